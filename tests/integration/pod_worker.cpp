#include "tests/integration/pod_worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/unique_fd.hpp"
#include "tests/integration/node.hpp"

namespace topolet::integration {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMiB = 1 << 20;
constexpr char kWorkerLabel[] = "worker";
constexpr std::chrono::seconds kCallDeadline(20);
/// For a call to be answered while topoletd is killed again and again.
constexpr std::chrono::seconds kPatience(180);
constexpr milliseconds kBetweenTries(20);
constexpr milliseconds kBetweenKnocks(1);
constexpr milliseconds kLongestLife(300);

/// Returns true if the call may yet have been done, or was not done only because topoletd had no time for it.
bool is_in_doubt(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded || error.code == Code::kCancelled ||
         error.code == Code::kAborted;
}

bool somebody_listens(const std::string& endpoint) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  endpoint.copy(address.sun_path, sizeof(address.sun_path) - 1, std::string_view("unix://").size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  placed += other.placed;
  denied += other.denied;
  repeated_creates += other.repeated_creates;
  abandoned_starts += other.abandoned_starts;
  resizes += other.resizes;
  return *this;
}

std::string to_string(const Tally& tally) {
  return fmt::format("{} containers created and {} refused, {} creates repeated, {} starts given up, {} resizes",
                     tally.placed, tally.denied, tally.repeated_creates, tally.abandoned_starts, tally.resizes);
}

PodWorker::PodWorker(std::string name, WorkerKind kind, WorkerContext& workplace, std::uint32_t seed)
    : name_(std::move(name)),
      kind_(kind),
      workplace_(workplace),
      dice_(seed),
      client_(workplace.endpoint, kCallDeadline) {}

void PodWorker::work() {
  while (!workplace_.is_closing) {
    remove_own_pods();
    if (workplace_.is_closing || !run_pod()) continue;
    const auto attempts = static_cast<std::uint32_t>(number(4, 16));
    for (std::uint32_t attempt = 0; attempt < attempts && !workplace_.is_closing; ++attempt) {
      if (!run_attempt(attempt)) break;
    }
  }
}

template <class Call>
auto PodWorker::call_until_answered(const char* what, Call call) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    ++workplace_.calls;
    auto result = call();
    if (result.has_value() || !is_in_doubt(result.error()) || workplace_.is_abandoned) return result;
    if (std::chrono::steady_clock::now() > give_up) {
      failures_.push_back(fmt::format("{}: {} found no end: {}", name_, what, result.error().message));
      return result;
    }
    recover(result.error());
  }
}

void PodWorker::recover(const Error& error) {
  if (error.code != Code::kUnavailable || somebody_listens(workplace_.endpoint)) {
    std::this_thread::sleep_for(kBetweenTries);
  }
  // Waits, so that a failure right after a restart is seen at once: a channel that failed waits before it connects
  // again.
  while (!somebody_listens(workplace_.endpoint) && !workplace_.is_abandoned)
    std::this_thread::sleep_for(kBetweenKnocks);
  if (error.code == Code::kUnavailable) client_ = CriClient(workplace_.endpoint, kCallDeadline);
}

/// Also those of whose making topoletd could not tell any more.
void PodWorker::remove_own_pods() {
  const auto own = call_until_answered("ListPodSandbox", [&] { return client_.pods({{kWorkerLabel, name_}}); });
  if (!own) return;
  for (const cri::PodSandbox& pod : *own) {
    (void)call_until_answered("StopPodSandbox", [&] { return client_.stop_sandbox(pod.id()); });
    remove_containers_of(pod.id());
    (void)call_until_answered("RemovePodSandbox", [&] { return client_.remove_sandbox(pod.id()); });
  }
}

/// As the kubelet does: containerd 2.4 may never end where it removes them with the sandbox while a plugin connects.
void PodWorker::remove_containers_of(const std::string& sandbox_id) {
  const auto containers = call_until_answered("ListContainers", [&] { return client_.containers(sandbox_id); });
  if (!containers) return;
  for (const cri::Container& container : *containers) {
    (void)call_until_answered("RemoveContainer", [&] { return client_.remove(container.id()); });
  }
}

bool PodWorker::run_pod() {
  const std::string name = fmt::format("{}-{}", name_, ++pods_);
  pod_ = {name, "uid-" + name, any_resources(), workplace_.cgroups, {{kWorkerLabel, name_}}, {}};
  former_attempts_.clear();
  // The name of one whose making ended in doubt may be taken; then another pod is tried.
  return call_until_answered("RunPodSandbox", [&] { return client_.run(pod_); }).has_value();
}

Resources PodWorker::any_resources() {
  if (kind_ == WorkerKind::kWholeCpus) return guaranteed(1000, 32 * kMiB);
  const int dice = number(1, 100);
  if (dice <= 10) return guaranteed(1500, 32 * kMiB);
  return dice <= 60 ? burstable(number(1, 500), 16 * kMiB) : besteffort();
}

bool PodWorker::run_attempt(std::uint32_t attempt) {
  // The kubelet ends the former attempt first; where it could not see it run, it does so later.
  const bool sees_former = happens(60);
  if (sees_former) end_former_attempts();
  const auto id = create(attempt);
  if (!id) {
    linger();  // until somebody gives up what it lacks
    return happens(90);
  }
  if (!sees_former) end_former_attempts();
  former_attempts_.push_back(*id);
  if (happens(30)) resize(*id);
  if (happens(30)) {
    // The next attempt comes while this one is being started.
    ++workplace_.calls;
    if (!client_.start(*id, milliseconds(number(1, 80)))) ++tally_.abandoned_starts;
    return true;
  }
  start(*id);
  if (happens(50)) linger();
  if (happens(30)) resize(*id);
  return true;
}

std::optional<std::string> PodWorker::create(std::uint32_t attempt) {
  const ContainerSpec spec{.attempt = attempt, .image = kImage};
  std::optional<std::string> found;
  int asked = 0;
  const auto ask = [&] {
    ++asked;
    return client_.create(pod_, spec);
  };
  // A create is refused while the runtime is still at work on an earlier one, and where that was done: then it is
  // found.
  wait_until([&] {
    const auto id = call_until_answered("CreateContainer", ask);
    found = id.has_value() ? std::optional(*id) : find(attempt);
    return found || id.error().message.find("is reserved for") == std::string::npos || workplace_.is_abandoned;
  });
  if (asked > 1) ++tally_.repeated_creates;
  ++(found ? tally_.placed : tally_.denied);
  return found;
}

std::optional<std::string> PodWorker::find(std::uint32_t attempt) {
  const auto containers = call_until_answered("ListContainers", [&] { return client_.containers(pod_.sandbox_id); });
  if (!containers) return std::nullopt;
  for (const cri::Container& container : *containers) {
    if (container.metadata().attempt() == attempt) return container.id();
  }
  return std::nullopt;
}

void PodWorker::start(const std::string& id) {
  // Some cannot be started any more: containerd 1.6 makes a container of no use out of a create that was cancelled.
  (void)call_until_answered("StartContainer", [&] { return client_.start(id); });
}

void PodWorker::resize(const std::string& id) {
  const cri::LinuxContainerResources resources = other_resources(id);
  (void)call_until_answered("UpdateContainerResources", [&] { return client_.update(id, resources); });
  ++tally_.resizes;
}

cri::LinuxContainerResources PodWorker::other_resources(const std::string& id) {
  if (!pod_.resources.is_guaranteed()) {
    cri::LinuxContainerResources shares;
    shares.set_cpu_shares(number(2, 900));
    return shares;
  }
  const std::int64_t memory = number(33, 64) * kMiB;
  if (happens(70)) return as_the_kubelet_sends(guaranteed(pod_.resources.cpu_request_milli, memory));
  // With a fraction it shares CPUs, from whatever moment on topoletd hears of it.
  workplace_.watch.stops_being_exclusive(id);
  return as_the_kubelet_sends(guaranteed(1500, memory));
}

void PodWorker::end_former_attempts() {
  for (const std::string& id : std::exchange(former_attempts_, {})) {
    // One that is killed at once ends with an exit code that is not 0.
    const std::chrono::seconds grace(happens(50) ? 1 : 0);
    (void)call_until_answered("StopContainer", [&] { return client_.stop(id, grace); });
    if (happens(70)) (void)call_until_answered("RemoveContainer", [&] { return client_.remove(id); });
  }
}

void PodWorker::linger() {
  const auto end = std::chrono::steady_clock::now() + milliseconds(number(0, static_cast<int>(kLongestLife.count())));
  wait_until([&] { return workplace_.is_closing || std::chrono::steady_clock::now() > end; });
}

}  // namespace topolet::integration
