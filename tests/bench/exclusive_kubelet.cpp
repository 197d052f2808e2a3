#include "tests/bench/exclusive_kubelet.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLongestRun(4);
constexpr milliseconds kSoonestRepeat(2);
constexpr milliseconds kLatestRepeat(20);
/// Much longer than any cycle takes on a busy machine.
constexpr seconds kCycleWithin(120);

}  // namespace

bool SharedProgress::begin_cycle() {
  const std::lock_guard lock(mutex_);
  if (left_ == 0 || !counts_.failure.empty()) return false;
  --left_;
  return true;
}

void SharedProgress::end_cycle() {
  const std::lock_guard lock(mutex_);
  ++counts_.cycles;
  last_cycle_ = Clock::now();
}

void SharedProgress::note_refusal(const Error& error) {
  const bool denied = error.code == Code::kResourceExhausted;
  if (!denied && error.code != Code::kUnavailable && error.code != Code::kAborted) return fail(error.message);
  bool stuck = false;
  {
    const std::lock_guard lock(mutex_);
    ++(denied ? counts_.denied : counts_.retried);
    stuck = Clock::now() - last_cycle_ > kCycleWithin;
  }
  if (stuck) fail(fmt::format("no container has come and gone for {} s: {}", kCycleWithin.count(), error.message));
}

void SharedProgress::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  if (counts_.failure.empty()) counts_.failure = std::move(why);
}

bool SharedProgress::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !counts_.failure.empty();
}

SharedProgress::Counts SharedProgress::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

ExclusiveKubelet::ExclusiveKubelet(const Options& options, SharedProgress& progress)
    : progress_(progress),
      pod_{.name = fmt::format("alone-{}", options.number), .kind = Kind::kExclusive, .cpu_milli = options.cpus * 1000},
      client_(options.socket),
      dice_(options.seed + options.number),
      sandbox_id_(id_in(client_.call(kServicePath + "RunPodSandbox", run_sandbox_request(pod_)))) {}

void ExclusiveKubelet::run() {
  while (progress_.begin_cycle()) {
    while (!run_container() && !progress_.has_failed()) wait(kSoonestRepeat, kLatestRepeat);
  }
}

/// False if it was not created or not started, and another one must be tried.
bool ExclusiveKubelet::run_container() {
  const std::string create = create_request(pod_, sandbox_id_, {.name = fmt::format("container-{}", containers_)});
  const std::optional<std::string> created = try_call("CreateContainer", create);
  if (!created) return false;
  ++containers_;
  const std::string id = id_request(id_in(*created));
  const bool started = try_call("StartContainer", id).has_value();
  if (started) wait(microseconds(0), kLongestRun);
  call("StopContainer", id);
  call("RemoveContainer", id);
  if (started) progress_.end_cycle();
  return started;
}

std::optional<std::string> ExclusiveKubelet::try_call(const char* method, const std::string& request) {
  const Result<std::string> answer = client_.try_call(kServicePath + method, request);
  if (answer) return *answer;
  progress_.note_refusal(answer.error());
  return std::nullopt;
}

void ExclusiveKubelet::call(const char* method, const std::string& request) {
  const Result<std::string> answer = client_.try_call(kServicePath + method, request);
  if (!answer) progress_.fail(answer.error().message);
}

void ExclusiveKubelet::wait(microseconds shortest, microseconds longest) {
  const auto range = static_cast<std::size_t>((longest - shortest).count());
  std::this_thread::sleep_for(shortest + microseconds(dice_.below(range + 1)));
}

}  // namespace topolet::bench
