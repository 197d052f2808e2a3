#include "tests/engine/random_kubelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace topolet::testing {
namespace {

constexpr std::int64_t kMemoryTotal = std::int64_t{64} << 30;
constexpr std::int64_t kMemoryLimit = std::int64_t{64} << 20;

simulate::Resources resources_of(bool guaranteed, std::int64_t milli) {
  simulate::Resources resources;
  if (milli > 0) resources.cpu_request_milli = milli;
  if (!guaranteed) return resources;
  resources.cpu_limit_milli = milli;
  resources.memory_request = resources.memory_limit = kMemoryLimit;
  return resources;
}

std::string id_in(const cri::RuntimeResponse& answer) {
  const auto id = cri::read_create_container_response(answer.body);
  return id ? *id : "";
}

bool is_guaranteed(const simulate::SimulatedPod& pod) { return pod.spec.qos == "guaranteed"; }

}  // namespace

bool RandomKubelet::waits_for_answers() const {
  return std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) { return entry.second.waits; });
}

bool RandomKubelet::act() {
  if (pods_.size() < deps_.habits.most_pods && deps_.dice.permille(150)) add_pod();
  std::vector<Pod*> free;
  for (auto& [uid, pod] : pods_) {
    if (!pod.waits) free.push_back(&pod);
  }
  return !free.empty() && act_on(*deps_.dice.one_of(free));
}

bool RandomKubelet::finish_resizes() {
  bool any = false;
  for (auto& [uid, pod] : pods_) {
    for (PlannedContainer& wanted : pod.containers) {
      if (pod.waits || wanted.resizing.empty()) continue;
      any = true;
      resize(pod, wanted);
    }
  }
  return any;
}

bool RandomKubelet::end_pods() {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.waits) uids.push_back(uid);
  }
  for (const std::string& uid : uids) {
    Pod& pod = pods_.at(uid);
    if (pod.phase == Phase::kNew || pod.phase == Phase::kRunning) pod.phase = Phase::kStopping;
    act_on(pod);
  }
  return !pods_.empty();
}

std::int64_t RandomKubelet::any_size(bool guaranteed) {
  static const std::vector<std::int64_t> kGuaranteed = {1000, 1000, 2000, 2000, 3000, 4000, 1500};
  static const std::vector<std::int64_t> kOthers = {0, 0, 500, 2000};
  return deps_.dice.one_of(guaranteed ? kGuaranteed : kOthers);
}

void RandomKubelet::add_pod() {
  static const std::vector<std::string> kClasses = {"guaranteed", "guaranteed", "burstable", "besteffort"};
  Pod pod;
  simulate::Operation& spec = pod.spec.spec;
  spec.kind = simulate::OperationKind::kRunPod;
  spec.pod = spec.name = fmt::format("pod-{:04}", ++last_number_);
  spec.qos = deps_.dice.one_of(kClasses);
  const std::size_t count = 1 + deps_.dice.below(2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t milli = spec.qos == "besteffort" ? 0 : any_size(spec.qos == "guaranteed");
    pod.containers.push_back({fmt::format("c{}", i), milli});
  }
  pods_.emplace(spec.pod, std::move(pod));
}

bool RandomKubelet::act_on(Pod& pod) {
  switch (pod.phase) {
    case Phase::kNew:
      run_pod(pod);
      return true;
    case Phase::kRunning:
      if (deps_.dice.permille(15)) pod.phase = Phase::kStopping;
      if (deps_.dice.permille(200) && clean_up(pod)) return true;
      return act_on(pod, pod.containers[deps_.dice.below(pod.containers.size())]);
    case Phase::kStopping:
      stop_pod(pod);
      return true;
    case Phase::kRemoving:
      remove_pod(pod);
      return true;
  }
  return false;
}

void RandomKubelet::send(Pod& pod, std::string method, std::string request, Answered answered) {
  pod.waits = true;
  deps_.send(std::move(method), std::move(request),
             [this, uid = pod.spec.spec.pod, answered = std::move(answered)](const cri::RuntimeResponse& answer) {
               pods_.at(uid).waits = false;
               answered(answer);
             });
}

void RandomKubelet::run_pod(Pod& pod) {
  // A sandbox whose answer was lost shows in the list.
  for (const auto& [id, sandbox] : deps_.runtime.sandboxes()) {
    if (sandbox.metadata().uid() != pod.spec.spec.pod || sandbox.state() != 0) continue;
    pod.spec.sandbox_id = id;
    pod.phase = Phase::kRunning;
    return;
  }
  send(pod, "RunPodSandbox", simulate::run_pod_request(pod.spec.spec, kMemoryTotal),
       [this, uid = pod.spec.spec.pod](const cri::RuntimeResponse& answer) {
         if (answer.code != Code::kOk) return;
         pods_.at(uid).spec.sandbox_id = id_in(answer);
         pods_.at(uid).phase = Phase::kRunning;
       });
}

void RandomKubelet::stop_pod(Pod& pod) {
  if (pod.spec.sandbox_id.empty()) {
    pod.phase = Phase::kRemoving;
    return;
  }
  send(pod, "StopPodSandbox", simulate::id_request(pod.spec.sandbox_id),
       [this, uid = pod.spec.spec.pod](const cri::RuntimeResponse& answer) {
         if (answer.code == Code::kOk) pods_.at(uid).phase = Phase::kRemoving;
       });
}

/// With every sandbox that was made for the pod; one by one, until none is left.
void RandomKubelet::remove_pod(Pod& pod) {
  const std::string uid = pod.spec.spec.pod;
  for (const auto& [id, sandbox] : deps_.runtime.sandboxes()) {
    if (sandbox.metadata().uid() != uid) continue;
    if (sandbox.state() == 0) {
      pod.spec.sandbox_id = id;
      pod.phase = Phase::kStopping;
      return stop_pod(pod);
    }
    return send(pod, "RemovePodSandbox", simulate::id_request(id), [](const cri::RuntimeResponse&) {});
  }
  pods_.erase(uid);
}

const RandomKubelet::Listed* RandomKubelet::newest(const Pod& pod, const PlannedContainer& wanted) const {
  const Listed* newest = nullptr;
  for (const Listed& listed : deps_.runtime.containers()) {
    const lens::ContainerMetadata& metadata = listed.second.config.metadata();
    if (listed.second.sandbox_id != pod.spec.sandbox_id || metadata.name() != wanted.name) continue;
    if (newest == nullptr || metadata.attempt() > newest->second.config.metadata().attempt()) newest = &listed;
  }
  return newest;
}

bool RandomKubelet::is_running(const std::string& container_id) const {
  const auto found = deps_.runtime.containers().find(container_id);
  return found != deps_.runtime.containers().end() && found->second.state == RunState::kRunning;
}

bool RandomKubelet::act_on(Pod& pod, PlannedContainer& wanted) {
  if (!wanted.resizing.empty()) {
    resize(pod, wanted);
    return pod.waits;
  }
  const Listed* listed = newest(pod, wanted);
  if (listed != nullptr)
    wanted.next_attempt = std::max(wanted.next_attempt, listed->second.config.metadata().attempt());
  if (listed == nullptr) {
    create(pod, wanted);
    return true;
  }
  switch (listed->second.state) {
    case RunState::kCreated:
      return act_on_created(pod, wanted, *listed);
    case RunState::kRunning:
      return act_on_running(pod, wanted, *listed);
    case RunState::kExited:
      ++wanted.next_attempt;
      create(pod, wanted);
      return true;
  }
  return false;
}

/// The kubelet starts what it has made. A container that it finds created it makes anew, as the next attempt: it cannot
/// know whether the start of that one is still under way.
bool RandomKubelet::act_on_created(Pod& pod, PlannedContainer& wanted, const Listed& newest) {
  const std::string& id = newest.first;
  const bool was_started = pod.started.count(id) != 0;
  const std::size_t choice = deps_.dice.below(100);
  if (!was_started && (pod.known.count(id) != 0 || choice < 15)) {
    start(pod, id);
  } else if (was_started && choice < 8) {
    start(pod, id);
  } else if (!was_started && choice < 65) {
    create(pod, wanted);  // whose answer was lost, and which did not show in the list then
  } else {
    ++wanted.next_attempt;
    create(pod, wanted);
  }
  return true;
}

bool RandomKubelet::act_on_running(Pod& pod, PlannedContainer& wanted, const Listed& newest) {
  const std::size_t choice = deps_.dice.below(100);
  const bool guaranteed = is_guaranteed(pod.spec);
  const std::size_t resizes = deps_.habits.resizes_percent;
  if (choice < resizes && guaranteed) {
    wanted.milli = any_size(true);
    wanted.resizing = newest.first;
    resize(pod, wanted);
    return true;
  }
  if (choice >= resizes + deps_.habits.stops_percent) return false;
  send(pod, "StopContainer", simulate::id_request(newest.first), [](const cri::RuntimeResponse&) {});
  return true;
}

/// Attempts that are over are removed, and so are some that were never started; an older one that runs is stopped.
bool RandomKubelet::clean_up(Pod& pod) {
  std::set<std::string> keep;
  for (const PlannedContainer& wanted : pod.containers) {
    const Listed* listed = newest(pod, wanted);
    if (listed != nullptr && listed->second.state != RunState::kExited) keep.insert(listed->first);
  }
  for (const auto& [id, container] : deps_.runtime.containers()) {
    if (container.sandbox_id != pod.spec.sandbox_id || keep.count(id) != 0) continue;
    const char* method = container.state == RunState::kRunning ? "StopContainer" : "RemoveContainer";
    for (PlannedContainer& wanted : pod.containers) {
      const lens::ContainerMetadata& metadata = container.config.metadata();
      if (metadata.name() == wanted.name) wanted.next_attempt = std::max(wanted.next_attempt, metadata.attempt() + 1);
    }
    send(pod, method, simulate::id_request(id), [](const cri::RuntimeResponse&) {});
    return true;
  }
  return false;
}

void RandomKubelet::create(Pod& pod, PlannedContainer& wanted) {
  for (const auto& [id, container] : deps_.runtime.containers()) {
    const lens::ContainerMetadata& metadata = container.config.metadata();
    const bool is_of_it = container.sandbox_id == pod.spec.sandbox_id && metadata.name() == wanted.name;
    if (is_of_it && metadata.attempt() < wanted.next_attempt) deps_.runtime.may_be_superseded(id);
  }
  simulate::Operation operation;
  operation.pod = pod.spec.spec.pod;
  operation.container = wanted.name;
  operation.resources = resources_of(is_guaranteed(pod.spec), wanted.milli);
  send(pod, "CreateContainer", simulate::create_request(operation, pod.spec, wanted.next_attempt, kMemoryTotal),
       [this, uid = pod.spec.spec.pod](const cri::RuntimeResponse& answer) {
         if (answer.code == Code::kOk) pods_.at(uid).known.insert(id_in(answer));
       });
}

void RandomKubelet::start(Pod& pod, const std::string& id) {
  pod.started.insert(id);
  send(pod, "StartContainer", simulate::id_request(id), [](const cri::RuntimeResponse&) {});
}

/// Until it is done, denied by topolet, or the container is no more.
void RandomKubelet::resize(Pod& pod, PlannedContainer& wanted) {
  if (!is_running(wanted.resizing)) return wanted.resizing.clear();
  simulate::Operation operation;
  deps_.runtime.expect_resize(wanted.resizing, wanted.milli);
  operation.resources.cpu_request_milli = operation.resources.cpu_limit_milli = wanted.milli;
  send(pod, "UpdateContainerResources",
       simulate::update_request(operation, wanted.resizing, qos_of(pod.spec, operation.resources), kMemoryTotal),
       [this, uid = pod.spec.spec.pod, name = wanted.name](const cri::RuntimeResponse& answer) {
         if (answer.code != Code::kOk && answer.code != Code::kResourceExhausted) return;
         for (PlannedContainer& done : pods_.at(uid).containers) {
           if (done.name == name) done.resizing.clear();
         }
       });
}

}  // namespace topolet::testing
