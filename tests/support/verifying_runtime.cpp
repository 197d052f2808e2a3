#include "tests/support/verifying_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/cri/methods.hpp"
#include "core/operations/demand.hpp"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kManyRequests = 256;
constexpr std::int64_t kGuaranteedOomScoreAdj = -997;

cri::RuntimeResponse refused() { return {Code::kUnknown, "refused", {}}; }

cri::RuntimeResponse lost() { return {Code::kUnavailable, "transport is closing", {}}; }

}  // namespace

std::string VerifyingRuntime::name_of(const std::string& sandbox_id, const lens::ContainerMetadata& metadata) {
  return fmt::format("{}/{}/{}", sandbox_id, metadata.name(), metadata.attempt());
}

std::string VerifyingRuntime::Container::name() const { return name_of(sandbox_id, config.metadata()); }

CpuSet VerifyingRuntime::Container::spec_cpus() const { return CpuSet::parse(spec.cpuset_cpus()).value(); }

bool VerifyingRuntime::Container::is_guaranteed() const {
  return config.linux().resources().oom_score_adj() == kGuaranteedOomScoreAdj;
}

std::size_t VerifyingRuntime::Container::whole_cpus() const {
  if (!is_guaranteed()) return 0;
  const std::int64_t milli = operations::cpu_request_milli(
      spec.cpu_shares(), operations::cpu_limit_milli(spec.cpu_quota_us(), spec.cpu_period_us()));
  return milli % 1000 == 0 ? static_cast<std::size_t>(milli / 1000) : 0;
}

bool VerifyingRuntime::Container::has_its_own(const CpuSet& cpus) const {
  return placed_alone && (cpus.size() == whole_cpus() || cpus.size() == asked_to_have);
}

void VerifyingRuntime::call(std::string path, std::string body, milliseconds timeout,
                            std::function<void(const cri::RuntimeResponse&)> done) {
  if (requests_.size() > kManyRequests) drop_finished_requests();
  const auto request =
      std::make_shared<Request>(Request{std::string(cri::parse_method(path).name), std::move(body), std::move(done)});
  requests_.push_back(request);
  count_updates(*request);
  const Faults& faults = options_.faults;
  std::size_t fate = deps_.dice.below(1000);
  const auto is = [&fate](std::size_t chance) {
    const bool hit = fate < chance;
    fate = hit ? 1000 : fate - chance;  // 1000: no other fate
    return hit;
  };
  const milliseconds delay = deps_.dice.up_to(faults.slowest);
  const cri::RuntimeResponse timed_out{Code::kDeadlineExceeded, "timed out", {}};
  request->begun = true;  // unless it does begin
  if (is(faults.hung)) return deps_.time.after(timeout, [this, request, timed_out] { answer(request, timed_out); });
  deps_.time.after(timeout, [this, weak = std::weak_ptr<Request>(request), timed_out] {
    if (const RequestPtr late = weak.lock()) answer(late, timed_out);
  });
  if (is(faults.refused)) return deps_.time.after(delay, [this, request] { answer(request, refused()); });
  if (is(faults.request_lost)) return deps_.time.after(delay, [this, request] { answer(request, lost()); });
  request->begun = false;
  request->lose_answer = is(faults.answer_lost);
  const bool answered_early = is(faults.answered_early);
  deps_.time.after(answered_early ? milliseconds(0) : delay, [this, request] { begin(request); });
  if (answered_early) deps_.time.after(delay / 2, [this, request] { answer(request, lost()); });
}

void VerifyingRuntime::begin(const RequestPtr& request) {
  if (request->dies || std::exchange(request->begun, true)) return;
  static const std::map<std::string_view, Handler> kHandlers = {
      {"RunPodSandbox", &VerifyingRuntime::run_pod},       {"StopPodSandbox", &VerifyingRuntime::stop_pod},
      {"RemovePodSandbox", &VerifyingRuntime::remove_pod}, {"ListPodSandbox", &VerifyingRuntime::list_pods},
      {"CreateContainer", &VerifyingRuntime::create},      {"StartContainer", &VerifyingRuntime::start},
      {"StopContainer", &VerifyingRuntime::stop},          {"RemoveContainer", &VerifyingRuntime::remove},
      {"ListContainers", &VerifyingRuntime::list},         {"UpdateContainerResources", &VerifyingRuntime::update},
      {"ContainerStatus", &VerifyingRuntime::status}};
  const auto handler = kHandlers.find(request->method);
  if (handler == kHandlers.end()) return end(request, {Code::kUnimplemented, "no such method", {}});
  (this->*handler->second)(request);
}

void VerifyingRuntime::end(const RequestPtr& request, cri::RuntimeResponse given) {
  if (request->lose_answer) given = lost();
  later([this, request, given = std::move(given)] { answer(request, given); });
}

void VerifyingRuntime::answer(const RequestPtr& request, const cri::RuntimeResponse& given) {
  if (!request->done) return;
  if (given.code != Code::kOk) deps_.trace.add(fmt::format("runtime: {} {}", request->method, given.message));
  const auto done = std::exchange(request->done, nullptr);
  done(given);
}

/// One who waits for the answer to an update has no say yet on what the container has: nobody may send a second one.
void VerifyingRuntime::count_updates(Request& request) {
  if (request.method != "UpdateContainerResources") return;
  const auto asked = simulate::read_request<lens::UpdateContainerResourcesRequest>(request.body);
  const std::string id = asked.container_id();
  Container* container = find(id);
  // The runtime refuses all updates of a container that has exited.
  if (container == nullptr || container->state == RunState::kExited) return;
  if (++container->updates_asked > 1 && !overtaken_) {
    overtaken_ = id + " is updated while another update of it is under way";
    deps_.trace.add("judge: " + *overtaken_);
  }
  request.done = [this, id, done = std::move(request.done)](const cri::RuntimeResponse& answer) {
    if (Container* updated = find(id); updated != nullptr && updated->updates_asked > 0) --updated->updates_asked;
    done(answer);
  };
}

void VerifyingRuntime::expect_resize(const std::string& container_id, std::int64_t milli) {
  Container& container = containers_.at(container_id);
  container.asked_to_have = static_cast<std::size_t>(milli / 1000);
  if (milli % 1000 != 0) container.placed_alone = false;
}

void VerifyingRuntime::lose_callers() {
  drop_finished_requests();
  for (auto& [id, container] : containers_) container.updates_asked = 0;
  for (const std::weak_ptr<Request>& weak : requests_) {
    const RequestPtr request = weak.lock();
    if (!request) continue;
    request->dies = deps_.dice.permille(500);
    // A request that was sent arrives before anything that a next caller sends.
    if (!request->begun) deps_.time.after({}, [this, request] { begin(request); });
    // Taken out first, as who is destroyed with it may call again.
    const auto dropped = std::exchange(request->done, nullptr);
  }
}

void VerifyingRuntime::drop_finished_requests() {
  std::erase_if(requests_, [](const std::weak_ptr<Request>& request) { return request.expired(); });
}

void VerifyingRuntime::later(milliseconds slowest, std::function<void()> work) {
  deps_.time.after(deps_.dice.up_to(slowest), std::move(work));
}

VerifyingRuntime::Container* VerifyingRuntime::find(const std::string& id) {
  const auto found = containers_.find(id);
  return found == containers_.end() ? nullptr : &found->second;
}

void VerifyingRuntime::exit(const std::string& container_id, std::int32_t exit_code) {
  const Container* container = find(container_id);
  if (container != nullptr && container->state == RunState::kRunning) die(container_id, exit_code);
}

void VerifyingRuntime::die(const std::string& id, std::int32_t exit_code) {
  Container& container = containers_.at(id);
  if (container.process) {
    const std::int64_t pid = container.process->pid;
    if (deps_.dice.permille(300)) {
      deps_.kernel.leave_zombie(pid);
      later([this, pid] { deps_.kernel.reap(pid); });
    } else {
      deps_.kernel.reap(pid);
    }
  }
  container.process.reset();
  container.starting = false;
  container.state = RunState::kExited;
  container.exit_code = exit_code;
  deps_.trace.add(fmt::format("runtime: {} has exited with code {}", id, exit_code));
  if (on_exited) on_exited(id);
}

void VerifyingRuntime::erase(const std::string& id) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return;
  names_.erase(found->second.name());
  containers_.erase(found);
  deps_.trace.add(fmt::format("runtime: {} is removed", id));
}

void VerifyingRuntime::put_on_online(Process& process, const CpuSet& cpuset) {
  process.cpus = online_ ? cpuset & *online_ : cpuset;
  process.lost_all = process.cpus.empty();
  if (process.lost_all) process.cpus = *online_;
  deps_.kernel.run_on(process.pid, process.cpus);
}

void VerifyingRuntime::set_online(const CpuSet& online) {
  online_ = online;
  deps_.trace.add("machine: online are " + online.to_string());
  for (auto& [id, container] : containers_) {
    if (container.process) put_on_online(*container.process, container.process->cpuset);
  }
  judge();
}

void VerifyingRuntime::judge() {
  if (violation_) return;
  for (const auto& [id, owner] : containers_) {
    if (!owner.process || !owner.process->alone || owner.process->lost_all) continue;
    for (const auto& [other_id, other] : containers_) {
      if (other_id == id || !other.process || other.process->lost_all) continue;
      if (!other.process->cpus.intersects(owner.process->cpus)) continue;
      violation_ = fmt::format("{} ({}) runs on {}, of which {} ({}) has {} for itself", other_id, other.name(),
                               other.process->cpus.to_string(), id, owner.name(), owner.process->cpus.to_string());
      deps_.trace.add("judge: " + *violation_);
      return;
    }
  }
}

}  // namespace topolet::testing
