#include "tests/bench/roles.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

#include "tests/bench/bad_clients.hpp"
#include "tests/bench/made_up_machine.hpp"

namespace topolet::bench {
namespace {

const std::string kMark = "role";
const std::string kJudges = "judges";
const std::string kDoesNotJudge = "does-not-judge";

void die_with_the_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

/// Does not return.
void run_command(const std::string& log, const std::string& machine, std::vector<std::string> command) {
  if (!machine.empty()) enter_machine(machine);
  die_with_the_parent();  // again: a new user namespace clears it
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0) throw std::runtime_error("cannot write " + log);
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::ofstream(exec_time_file(log)) << std::chrono::steady_clock::now().time_since_epoch().count() << std::flush;
  ::execv(pointers[0], pointers.data());
  throw std::runtime_error(fmt::format("cannot run {}: {}", command[0], std::strerror(errno)));
}

using Arguments = std::vector<std::string>;
using Run = std::function<void(const Arguments&)>;

/// Parses the arguments that runtime_role() wrote.
RuntimeOptions runtime_options(const Arguments& arguments) {
  return {.held_calls = std::stoul(arguments.at(1)),
          .update_time = std::chrono::milliseconds(std::stol(arguments.at(2))),
          .judges = arguments.at(3) == kJudges,
          .seed = std::stoull(arguments.at(4))};
}

const std::map<std::string, Run>& roles() {
  static const std::map<std::string, Run> kRoles = {
      {"runtime", [](const Arguments& a) { run_runtime(a.at(0), runtime_options(a)); }},
      {"relay", [](const Arguments& a) { run_relay(a.at(0), a.at(1)); }},
      {"bare", [](const Arguments& a) { run_bare_proxy(a.at(0), a.at(1)); }},
      {"bad-clients", [](const Arguments& a) { run_bad_clients(a.at(0), a.at(1), std::stoul(a.at(2))); }},
      {"watchers", [](const Arguments& a) { run_watchers(a.at(0), std::stoul(a.at(1))); }},
      {"command",
       [](const Arguments& a) {
         run_command(a.at(0), a.at(1), {a.begin() + 2, a.end()});
       }},
      {"try-machine", [](const Arguments& a) { enter_machine(a.at(0)); }},
  };
  return kRoles;
}

}  // namespace

std::vector<std::string> runtime_role(const std::string& listen, const RuntimeOptions& options) {
  return {kMark,
          "runtime",
          listen,
          std::to_string(options.held_calls),
          std::to_string(options.update_time.count()),
          options.judges ? kJudges : kDoesNotJudge,
          std::to_string(options.seed)};
}
std::vector<std::string> relay_role(const std::string& listen, const std::string& runtime) {
  return {kMark, "relay", listen, runtime};
}
std::vector<std::string> bare_proxy_role(const std::string& listen, const std::string& runtime) {
  return {kMark, "bare", listen, runtime};
}
std::vector<std::string> bad_clients_role(const std::string& socket, const std::string& kind, std::size_t connections) {
  return {kMark, "bad-clients", socket, kind, std::to_string(connections)};
}
std::vector<std::string> watchers_role(const std::string& socket, std::size_t count) {
  return {kMark, "watchers", socket, std::to_string(count)};
}
std::vector<std::string> command_role(const std::string& log, const std::string& machine,
                                      const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {kMark, "command", log, machine};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

bool run_role(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[0] != kMark) return false;
  die_with_the_parent();
  ::signal(SIGPIPE, SIG_IGN);
  roles().at(arguments[1])({arguments.begin() + 2, arguments.end()});
  return true;
}

}  // namespace topolet::bench
