#include "tests/integration/node.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace topolet::integration {
namespace {

constexpr std::chrono::milliseconds kBetweenAsks(20);
constexpr std::size_t kLogTailBytes = 4000;
constexpr char kPrivateRuntime[] = TOPOLET_SOURCE_DIR "/scripts/private-runtime";
constexpr char kPluginDir[] = TOPOLET_PLUGIN_DIR;

bool in_path(const std::string& program) {
  const char* const own = std::getenv("PATH");
  std::istringstream path(fmt::format("{}:/usr/local/sbin:/usr/sbin:/sbin", own == nullptr ? "" : own));
  for (std::string directory; std::getline(path, directory, ':');) {
    if (access((directory + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string without_newline(std::string line) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

/// How often topoletd has registered with the runtime, in all its lives.
int registrations_in(const std::filesystem::path& log) {
  std::ifstream file(log);
  int registrations = 0;
  for (std::string line; std::getline(file, line);)
    registrations += line.find("NRI: registered as") == std::string::npos ? 0 : 1;
  return registrations;
}

}  // namespace

bool is_nri_front() {
  const char* const front = std::getenv("TOPOLET_FRONT");
  return front != nullptr && std::string_view(front) == "nri";
}

bool wait_until(const std::function<bool()>& is_so, std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kBetweenAsks);
  }
  return true;
}

std::string why_no_containers() {
  if (geteuid() != 0) return "real containers need root";
  for (const char* program : {"containerd", "ctr", "runc"}) {
    if (!in_path(program)) return fmt::format("{} is not installed (scripts/test installs it)", program);
  }
  return {};
}

Result<std::unique_ptr<PrivateRuntime>> PrivateRuntime::start() {
  auto finished = run_to_end({kPrivateRuntime, "up", std::to_string(getpid())});
  if (!finished) return finished.error();
  if (finished->exit_code != 0) return Error{Code::kInternal, "scripts/private-runtime failed; see above"};
  return std::unique_ptr<PrivateRuntime>(new PrivateRuntime(without_newline(finished->out)));
}

// A test that runs out of memory here may end here.
PrivateRuntime::~PrivateRuntime() {  // NOLINT(bugprone-exception-escape)
  const auto finished = run_to_end({kPrivateRuntime, "down", directory_.string()});
  if (!finished || finished->exit_code != 0) std::fprintf(stderr, "%s could not be removed\n", directory_.c_str());
}

bool PrivateRuntime::has_died() const {
  std::string pid;
  std::getline(std::ifstream(directory_ / "containerd.pid"), pid);
  std::string stat;  // PID (NAME) STATE …
  std::getline(std::ifstream("/proc/" + pid + "/stat"), stat);
  const std::size_t name = stat.find("(containerd) ");
  return name == std::string::npos || stat.compare(name + std::string_view("(containerd) ").size(), 1, "Z") == 0;
}

Status PrivateRuntime::start_again() const {
  const auto finished = run_to_end({kPrivateRuntime, "again", directory_.string()});
  if (!finished) return finished.error();
  if (finished->exit_code != 0) return Error{Code::kInternal, "scripts/private-runtime failed; see above"};
  return {};
}

bool PrivateRuntime::is_updating() const {
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ostringstream command;  // runc, its options with our room in them, "update", …; each ended by a zero byte
    command << std::ifstream(process.path() / "cmdline").rdbuf();
    const std::string words = command.str();
    if (words.find(directory_.string()) != std::string::npos &&
        words.find(std::string("\0update\0", 8)) != std::string::npos) {
      return true;
    }
  }
  return false;
}

Daemon::Daemon(std::filesystem::path directory, std::string runtime_endpoint)
    : directory_(std::move(directory)),
      runtime_endpoint_(std::move(runtime_endpoint)),
      plugin_flags_{"--config", "/dev/null", std::string("--daemon.plugin-dir=") + kPluginDir,
                    "--plugins.enable=numa"} {}

void Daemon::use_plugins(const std::filesystem::path& plugin_dir, const std::filesystem::path& config) {
  plugin_flags_ = {"--config", config.string(), "--daemon.plugin-dir=" + plugin_dir.string()};
}

Status Daemon::start(const std::vector<std::string>& more_flags) {
  // Decisions must not depend on how busy the machine is, an emulated one above all.
  std::vector<std::string> command = {TOPOLET_DAEMON,
                                      "--daemon.control=" + (directory_ / "control.sock").string(),
                                      "--daemon.runtime=" + runtime_endpoint_,
                                      "--daemon.state-dir=" + state_db().parent_path().string(),
                                      "--daemon.store-patience=10s",
                                      "--placement.deadline-ms=5000"};
  const std::vector<std::string> front = front_flags();
  command.insert(command.end(), front.begin(), front.end());
  command.insert(command.end(), plugin_flags_.begin(), plugin_flags_.end());
  command.insert(command.end(), more_flags.begin(), more_flags.end());
  const int before = registrations_in(log());
  auto child = Child::start(command, log());
  if (!child) return child.error();
  child_.emplace(*std::move(child));
  // So that it is found and ended with its room, should this process be killed.
  std::ofstream(directory_ / "topoletd.pid") << child_->pid() << '\n';
  // A channel that failed once makes progress only while a call waits on it: a new one for each try.
  const auto version = [&] { return CriClient(endpoint(), std::chrono::seconds(10)).version(); };
  // The runtime answers, whether topoletd is there or not, and creates nothing without it where it is required.
  if (is_nri_front()) wait_until([&] { return child_->has_ended() || registrations_in(log()) > before; });
  wait_until([&] { return child_->has_ended() || version().has_value(); });
  if (child_->has_ended()) return Error{Code::kInternal, "topoletd ended at once:\n" + log_tail()};
  if (auto answer = version(); !answer) return Error{answer.error().code, answer.error().message + "\n" + log_tail()};
  return {};
}

std::string Daemon::endpoint() const {
  return is_nri_front() ? runtime_endpoint_ : "unix://" + (directory_ / "topolet.sock").string();
}

std::vector<std::string> Daemon::front_flags() const {
  if (!is_nri_front()) return {"--daemon.listen=" + endpoint()};
  return {"--daemon.front=nri", "--nri.socket=unix://" + (directory_ / "nri.sock").string()};
}

int Daemon::end(int signal) { return child_ ? child_->end(signal) : 0; }

std::string Daemon::log_tail() const {
  std::ifstream file(log());
  std::ostringstream text;
  text << file.rdbuf();
  const std::string log = text.str();
  return log.size() > kLogTailBytes ? log.substr(log.size() - kLogTailBytes) : log;
}

}  // namespace topolet::integration
