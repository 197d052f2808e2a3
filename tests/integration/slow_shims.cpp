#include "tests/integration/slow_shims.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <string>

namespace topolet::integration {
namespace {

constexpr std::chrono::milliseconds kLongestHalt(800);
constexpr std::chrono::milliseconds kLongestBetween(100);

/// The containerd-shim that is a process's parent; 0 if that is something else.
pid_t shim_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);  // PID (NAME) STATE PARENT …
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  const auto parent = static_cast<pid_t>(std::stol(stat.substr(name_end + 4)));
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", parent)), name);
  return name.rfind("containerd-shim", 0) == 0 ? parent : 0;
}

}  // namespace

SlowShims::SlowShims(const std::vector<pid_t>& containers, std::uint32_t seed) : dice_(seed) {
  for (const pid_t container : containers) {
    if (const pid_t shim = shim_of(container); shim != 0) shims_.push_back(shim);
  }
  thread_ = std::thread([this] { slow_down(); });
}

SlowShims::~SlowShims() {
  set(Mode::kOver);
  thread_.join();
}

void SlowShims::make_fast() {
  set(Mode::kFast);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !one_stands_still_; });
}

void SlowShims::make_slow() { set(Mode::kSlow); }

void SlowShims::set(Mode mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
  changed_.notify_all();
}

void SlowShims::slow_down() {
  std::unique_lock lock(mutex_);
  while (!shims_.empty()) {
    changed_.wait(lock, [this] { return mode_ != Mode::kFast; });
    if (mode_ == Mode::kOver) return;
    const pid_t shim = shims_[std::uniform_int_distribution<std::size_t>(0, shims_.size() - 1)(dice_)];
    ::kill(shim, SIGSTOP);
    one_stands_still_ = true;
    pause(lock, kLongestHalt);
    ::kill(shim, SIGCONT);
    one_stands_still_ = false;
    changed_.notify_all();
    pause(lock, kLongestBetween);
  }
}

void SlowShims::pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds longest) {
  using Count = std::chrono::milliseconds::rep;
  const std::chrono::milliseconds time(std::uniform_int_distribution<Count>(0, longest.count())(dice_));
  changed_.wait_for(lock, time, [this] { return mode_ != Mode::kSlow; });
}

}  // namespace topolet::integration
