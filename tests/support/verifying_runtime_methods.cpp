// The methods of the runtime.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/simulate/runtime_messages.hpp"
#include "tests/support/verifying_runtime.hpp"

namespace topolet::testing {
namespace {

using simulate::ok_answer;
using simulate::ok_answer_with_id;
using simulate::read_request;
using std::chrono::milliseconds;

constexpr std::int32_t kSandboxNotReady = 1;
constexpr std::int32_t kKilled = 137;
constexpr std::int32_t kCouldNotStart = 128;

cri::RuntimeResponse no_such(const std::string& id) {
  return {Code::kNotFound, fmt::format("an error occurred when try to find container \"{}\": not found", id), {}};
}

cri::RuntimeResponse no(std::string message) { return {Code::kUnknown, std::move(message), {}}; }

/// The verbose part of a status, as far as topolet reads it.
std::string info_of(const std::string& id, const VerifyingRuntime::Container& container) {
  const lens::ContainerConfig& config = container.config;
  const lens::Resources& made_with = config.linux().resources();
  const lens::Resources& spec = container.spec;
  nlohmann::json info;
  info["sandboxID"] = container.sandbox_id;
  info["pid"] = container.state == RunState::kRunning ? container.process->pid : 0;
  info["config"]["metadata"] = {{"name", config.metadata().name()}, {"attempt", config.metadata().attempt()}};
  info["config"]["linux"]["resources"] = {{"cpu_period", made_with.cpu_period_us()},
                                          {"cpu_quota", made_with.cpu_quota_us()},
                                          {"cpu_shares", made_with.cpu_shares()},
                                          {"oom_score_adj", made_with.oom_score_adj()},
                                          {"memory_limit_in_bytes", made_with.memory_limit_bytes()}};
  nlohmann::json& linux = info["runtimeSpec"]["linux"];
  linux["cgroupsPath"] = container.cgroup_parent + "/" + id;
  linux["resources"]["cpu"] = {{"period", spec.cpu_period_us()},
                               {"quota", spec.cpu_quota_us()},
                               {"shares", spec.cpu_shares()},
                               {"cpus", spec.cpuset_cpus()}};
  linux["resources"]["memory"] = {{"limit", spec.memory_limit_bytes()}};
  return info.dump();
}

}  // namespace

bool VerifyingRuntime::is_ready(const std::string& sandbox_id) const {
  const auto found = sandboxes_.find(sandbox_id);
  return found != sandboxes_.end() && found->second.state() != kSandboxNotReady;
}

void VerifyingRuntime::run_pod(const RequestPtr& request) {
  later([this, request] {
    if (request->dies) return;
    const auto asked = read_request<lens::RunPodSandboxRequest>(request->body);
    lens::PodSandbox sandbox;
    sandbox.set_id(fmt::format("sandbox-{:06}", ++last_number_));
    *sandbox.mutable_metadata() = asked.config().metadata();
    sandbox.set_runtime_handler(asked.runtime_handler());
    sandboxes_[sandbox.id()] = sandbox;
    deps_.trace.add(fmt::format("runtime: {} of pod {} is there", sandbox.id(), sandbox.metadata().uid()));
    end(request, ok_answer_with_id(sandbox.id()));
  });
}

/// Processes of the sandbox end; a start that has none yet will find the sandbox stopped.
void VerifyingRuntime::end_all_in(const std::string& sandbox_id) {
  std::vector<std::string> ids;
  for (const auto& [id, container] : containers_) {
    if (container.sandbox_id == sandbox_id && container.process) ids.push_back(id);
  }
  for (const std::string& id : ids) die(id, kKilled);
}

void VerifyingRuntime::stop_pod(const RequestPtr& request) {
  later([this, request] {
    const std::string id = read_request<lens::Target>(request->body).id();
    if (request->dies) return;
    if (const auto found = sandboxes_.find(id); found != sandboxes_.end()) found->second.set_state(kSandboxNotReady);
    end_all_in(id);
    deps_.trace.add(fmt::format("runtime: {} is stopped", id));
    end(request, ok_answer());
  });
}

void VerifyingRuntime::remove_pod(const RequestPtr& request) {
  later([this, request] {
    const std::string sandbox_id = read_request<lens::Target>(request->body).id();
    if (request->dies) return;
    end_all_in(sandbox_id);
    std::vector<std::string> ids;
    for (const auto& [id, container] : containers_) {
      if (container.sandbox_id == sandbox_id) ids.push_back(id);
    }
    for (const std::string& id : ids) erase(id);
    sandboxes_.erase(sandbox_id);
    deps_.trace.add(fmt::format("runtime: {} is removed", sandbox_id));
    end(request, ok_answer());
  });
}

void VerifyingRuntime::list_pods(const RequestPtr& request) {
  end(request, simulate::answer_with_sandboxes(sandboxes_));
}

void VerifyingRuntime::create(const RequestPtr& request) {
  const auto asked = read_request<lens::CreateContainerRequest>(request->body);
  if (!is_ready(asked.sandbox_id())) return end(request, no("failed to find running sandbox " + asked.sandbox_id()));
  supersede_earlier(asked);
  const std::string name = name_of(asked.sandbox_id(), asked.config().metadata());
  if (const auto [reserved, is_new] = names_.emplace(name, ""); !is_new) {
    const std::string& by = reserved->second;
    if (!by.empty() && options_.create_again_gives_same_id) return end(request, ok_answer_with_id(by));
    return end(request,
               no(fmt::format("failed to reserve container name {0}: name {0} is reserved for \"{1}\"", name, by)));
  }
  later([this, request, asked, name] {
    if (request->dies || !is_ready(asked.sandbox_id())) {
      names_.erase(name);
      return end(request, no("context canceled"));
    }
    const std::string id = fmt::format("container-{:06}", ++last_number_);
    names_[name] = id;
    end(request, make(id, asked));
  });
}

/// An attempt that never ran holds nothing against the next one; it may be started all the same, and then shares.
void VerifyingRuntime::supersede_earlier(const lens::CreateContainerRequest& asked) {
  const lens::ContainerMetadata& next = asked.config().metadata();
  for (auto& [id, container] : containers_) {
    const lens::ContainerMetadata& metadata = container.config.metadata();
    const bool same = container.sandbox_id == asked.sandbox_id() && metadata.name() == next.name();
    const bool never_ran = container.state == RunState::kCreated && !container.starting;
    if (!same || !never_ran || metadata.attempt() >= next.attempt()) continue;
    container.superseded = true;
    container.placed_alone = false;
  }
}

cri::RuntimeResponse VerifyingRuntime::make(const std::string& id, const lens::CreateContainerRequest& asked) {
  Container& made = containers_[id];
  made.sandbox_id = asked.sandbox_id();
  made.config = asked.config();
  made.spec = asked.config().linux().resources();
  made.cgroup_parent = asked.sandbox_config().linux().cgroup_parent();
  const std::size_t whole = made.whole_cpus();
  made.placed_alone = whole > 0 && made.spec_cpus().size() == whole;
  deps_.trace.add(fmt::format("runtime: {} is made for {}, CPUs {}{}", id, made.name(), made.spec.cpuset_cpus(),
                              made.placed_alone ? " alone" : ""));
  if (made.spec.cpuset_cpus().empty() && !violation_) violation_ = id + " was made without a cpuset";
  return ok_answer_with_id(id);
}

std::optional<cri::RuntimeResponse> VerifyingRuntime::cannot_start(const std::string& id) const {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return no_such(id);
  const Container& container = found->second;
  if (container.state != RunState::kCreated || container.starting) return no("it is not in created state");
  if (container.removing) return no("it is being removed");
  if (!is_ready(container.sandbox_id)) return no("sandbox container is not running");
  return std::nullopt;
}

void VerifyingRuntime::start(const RequestPtr& request) {
  const std::string id = read_request<lens::Target>(request->body).id();
  if (const auto refusal = cannot_start(id)) return end(request, *refusal);
  Container& container = containers_.at(id);
  container.starting = true;
  const CpuSet cpus = container.spec_cpus();
  const bool alone = container.has_its_own(cpus);
  deps_.trace.add(fmt::format("runtime: {} begins to start, on {}", id, cpus.to_string()));
  later(options_.faults.slowest_start, [this, request, id, cpus, alone] { begin_process(request, id, cpus, alone); });
}

void VerifyingRuntime::begin_process(const RequestPtr& request, const std::string& id, const CpuSet& cpus, bool alone) {
  Container* container = find(id);
  if (container == nullptr) return end(request, no_such(id));
  const bool fails = request->dies || deps_.dice.permille(options_.faults.start_failed);
  if (fails || !is_ready(container->sandbox_id)) {
    die(id, kCouldNotStart);
    return end(request, no("failed to create containerd task"));
  }
  container->process = Process{.pid = ++last_pid_, .cpuset = cpus, .alone = alone};
  put_on_online(*container->process, cpus);
  deps_.trace.add(fmt::format("runtime: {} has process {} on {}", id, last_pid_, cpus.to_string()));
  judge();
  later([this, request, id] { is_running(request, id); });
}

void VerifyingRuntime::is_running(const RequestPtr& request, const std::string& id) {
  Container* container = find(id);
  if (container == nullptr || !container->process) return end(request, no("the process is gone"));
  container->starting = false;
  container->state = RunState::kRunning;
  deps_.trace.add(fmt::format("runtime: {} runs", id));
  end(request, ok_answer());
}

void VerifyingRuntime::stop(const RequestPtr& request) {
  const std::string id = read_request<lens::Target>(request->body).id();
  const Container* container = find(id);
  if (container == nullptr) return end(request, no_such(id));
  if (container->state != RunState::kRunning) return end(request, ok_answer());
  later([this, request, id] {
    if (request->dies) return;
    exit(id, deps_.dice.permille(500) ? 0 : kKilled);
    end(request, ok_answer());
  });
}

void VerifyingRuntime::remove(const RequestPtr& request) {
  const std::string id = read_request<lens::Target>(request->body).id();
  Container* container = find(id);
  if (container == nullptr) return end(request, ok_answer());
  if (container->starting) return end(request, no("container is in starting state, can't be removed"));
  if (container->removing) return end(request, no("container is already in removing state"));
  container->removing = true;
  if (container->process) die(id, kKilled);
  later([this, request, id] {
    erase(id);
    end(request, ok_answer());
  });
}

void VerifyingRuntime::update(const RequestPtr& request) {
  const auto asked = read_request<lens::UpdateContainerResourcesRequest>(request->body);
  Container* container = find(asked.container_id());
  if (container == nullptr) return end(request, no_such(asked.container_id()));
  const milliseconds now = deps_.time.now();
  const milliseconds slowest = options_.faults.slowest_update.value_or(options_.faults.slowest);
  container->updates_until = std::max(now + deps_.dice.up_to(slowest), container->updates_until);
  deps_.time.after(container->updates_until - now, [this, request, asked] {
    if (!request->dies) end(request, apply(asked));
  });
}

cri::RuntimeResponse VerifyingRuntime::apply(const lens::UpdateContainerResourcesRequest& asked) {
  Container* container = find(asked.container_id());
  if (container == nullptr) return no_such(asked.container_id());
  if (container->state == RunState::kExited) {
    return deps_.dice.permille(500) ? no_such(asked.container_id()) : no("container is in exited state");
  }
  const CpuSet before = container->spec_cpus();
  simulate::update_resources(container->spec, asked.linux());
  const CpuSet now = container->spec_cpus();
  const bool grows_or_shrinks = before.is_subset_of(now) || now.is_subset_of(before);
  container->placed_alone = grows_or_shrinks && container->has_its_own(now);
  const bool runs = container->state == RunState::kRunning;
  deps_.trace.add(fmt::format("runtime: {} is updated to {}{}", asked.container_id(), container->spec.cpuset_cpus(),
                              runs ? "" : ", in its spec only"));
  if (!runs) return ok_answer();
  Process& process = *container->process;
  process.cpuset = now;
  process.alone = container->placed_alone;
  put_on_online(process, now);
  judge();
  return ok_answer();
}

std::string VerifyingRuntime::list_containers() const { return simulate::answer_with_containers(containers_).body; }

void VerifyingRuntime::list(const RequestPtr& request) { end(request, {Code::kOk, {}, list_containers()}); }

void VerifyingRuntime::status(const RequestPtr& request) {
  const std::string id = read_request<lens::ContainerStatusRequest>(request->body).container_id();
  const Container* container = find(id);
  if (container == nullptr) return end(request, no_such(id));
  lens::ContainerStatusResponse response;
  lens::ContainerStatus& status = *response.mutable_status();
  status.set_id(id);
  *status.mutable_metadata() = container->config.metadata();
  status.set_state(static_cast<std::int32_t>(container->state));
  status.set_exit_code(container->exit_code);
  lens::Entry& info = *response.add_info();
  info.set_key("info");
  info.set_value(info_of(id, *container));
  end(request, ok_answer(response));
}

}  // namespace topolet::testing
