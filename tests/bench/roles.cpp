#include "tests/bench/roles.hpp"

#include <sys/prctl.h>

#include <csignal>
#include <functional>
#include <map>

namespace topolet::bench {
namespace {

const std::string kMark = "role";

using Run = std::function<void(const std::string& listen, const std::string& more)>;

const std::map<std::string, Run>& roles() {
  static const std::map<std::string, Run> kRoles = {
      {"runtime", [](const std::string& listen, const std::string& held) { run_runtime(listen, std::stoul(held)); }},
      {"relay", run_relay},
      {"bare", run_bare_proxy},
      {"topolet", run_topolet_proxy},
  };
  return kRoles;
}

}  // namespace

std::vector<std::string> runtime_role(const std::string& listen, std::size_t held_calls) {
  return {kMark, "runtime", listen, std::to_string(held_calls)};
}
std::vector<std::string> relay_role(const std::string& listen, const std::string& runtime) {
  return {kMark, "relay", listen, runtime};
}
std::vector<std::string> bare_proxy_role(const std::string& listen, const std::string& runtime) {
  return {kMark, "bare", listen, runtime};
}
std::vector<std::string> topolet_proxy_role(const std::string& listen, const std::string& runtime) {
  return {kMark, "topolet", listen, runtime};
}

bool run_role(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4 || arguments[0] != kMark) return false;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  roles().at(arguments[1])(arguments[2], arguments[3]);
  return true;
}

}  // namespace topolet::bench
