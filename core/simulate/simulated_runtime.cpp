#include "core/simulate/simulated_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/cri/messages/intercepted_methods.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::simulate {
namespace {

constexpr std::int32_t kCreated = 0;
constexpr std::int32_t kRunning = 1;
constexpr std::int32_t kExited = 2;
constexpr std::int32_t kSandboxNotReady = 1;
constexpr std::int32_t kTerminated = 143;  // 128 + SIGTERM

cri::RuntimeResponse no_such(std::string_view what, const std::string& id) {
  return {Code::kNotFound, fmt::format("the simulated runtime has no {} {}", what, id), {}};
}

cri::RuntimeResponse lost_answer() { return {Code::kUnavailable, "the simulated runtime's answer was lost", {}}; }
cri::RuntimeResponse refused() { return {Code::kUnknown, "the simulated runtime was told to refuse", {}}; }

/// As runc says it.
cri::RuntimeResponse busy() { return {Code::kUnknown, "failed to write \"cpuset.cpus\": device or resource busy", {}}; }

nlohmann::json created_as(const lens::ContainerConfig& config) {
  const lens::Resources& asked = config.linux().resources();
  nlohmann::json resources = {
      {"cpu_period", asked.cpu_period_us()},    {"cpu_quota", asked.cpu_quota_us()},
      {"cpu_shares", asked.cpu_shares()},       {"memory_limit_in_bytes", asked.memory_limit_bytes()},
      {"oom_score_adj", asked.oom_score_adj()}, {"cpuset_cpus", asked.cpuset_cpus()},
      {"cpuset_mems", asked.cpuset_mems()},     {"hugepage_limits", nlohmann::json::array()}};
  for (const auto& pages : asked.hugepage_limits()) {
    resources["hugepage_limits"].push_back({{"page_size", pages.page_size()}, {"limit", pages.limit_bytes()}});
  }
  nlohmann::json info = {{"metadata", {{"name", config.metadata().name()}, {"attempt", config.metadata().attempt()}}},
                         {"devices", nlohmann::json::array()},
                         {"CDI_devices", nlohmann::json::array()},
                         {"envs", nlohmann::json::array()},
                         {"annotations", nlohmann::json::object()},
                         {"linux", {{"resources", std::move(resources)}}}};
  for (const auto& device : config.devices()) info["devices"].push_back({{"host_path", device.host_path()}});
  for (const auto& device : config.cdi_devices()) info["CDI_devices"].push_back({{"name", device.name()}});
  for (const auto& env : config.envs()) info["envs"].push_back({{"key", env.key()}, {"value", env.value()}});
  for (const auto& annotation : config.annotations()) info["annotations"][annotation.key()] = annotation.value();
  return info;
}

std::string container_id_of(std::uint64_t number) { return fmt::format("container-{:08}", number); }

template <class Set>
Set set_of(const std::string& list) {
  auto set = Set::parse(list);
  return set ? *std::move(set) : Set();
}

}  // namespace

struct SimulatedRuntime::Container {
  std::string sandbox_id;
  lens::ContainerConfig config;  ///< as it was created
  std::string cgroup;
  lens::Resources resources;  ///< as updates have left them
  std::int64_t pid = 0;
  CpuSet kernel_cpus = {};  ///< empty: nobody has said where it runs
  std::int32_t state = 0;
  std::int32_t exit_code = 0;
};

/// The interference of something else that sets the CPUs of a container.
struct SimulatedRuntime::Hand {
  CpuSet cpus;
  bool again = false;
};

/// By id; hands and who is stuck by pod uid and the container's name.
struct SimulatedRuntime::Records {
  std::map<std::string, lens::PodSandbox> sandboxes;
  std::map<std::string, Container> containers;
  std::map<std::int64_t, std::string> by_pid;  ///< ids, of containers that are no more too
  std::map<std::pair<std::string, std::string>, Hand> hands;
  std::set<std::pair<std::string, std::string>> stuck;
};

SimulatedRuntime::SimulatedRuntime() : records_(std::make_unique<Records>()) {}

SimulatedRuntime::~SimulatedRuntime() = default;

/// topolet intercepts just those.
bool changes_something(std::string_view method) { return cri::find_interception(method) != nullptr; }

cri::RuntimeResponse SimulatedRuntime::answer(std::string_view method, const std::string& request, Caller caller) {
  cri::RuntimeResponse answer = do_call(method, request, caller);
  if (changed_ && changes_something(method)) changed_();
  return answer;
}

void SimulatedRuntime::exit(const std::string& container_id, std::int32_t exit_code) {
  const auto found = records_->containers.find(container_id);
  if (found == records_->containers.end()) return;
  found->second.state = kExited;
  found->second.exit_code = exit_code;
}

cri::RuntimeResponse SimulatedRuntime::do_call(std::string_view method, const std::string& request, Caller caller) {
  if (method == "RunPodSandbox") return run_pod(request);
  if (method == "StopPodSandbox") return stop_pod(request);
  if (method == "RemovePodSandbox") return remove_pod(request);
  if (method == "ListPodSandbox") return answer_with_sandboxes(records_->sandboxes);
  if (method == "CreateContainer") return create(request);
  if (method == "StartContainer") return start(request);
  if (method == "StopContainer") return stop(request);
  if (method == "RemoveContainer") return remove(request);
  if (method == "UpdateContainerResources") return update(request, caller);
  if (method == "ContainerStatus") return status(request);
  if (method == "ListContainers") return answer_with_containers(records_->containers);
  return {Code::kUnimplemented, fmt::format("the simulated runtime does not implement {}", method), {}};
}

cri::RuntimeResponse SimulatedRuntime::run_pod(const std::string& bytes) {
  const auto request = read_request<lens::RunPodSandboxRequest>(bytes);
  for (const auto& [id, known] : records_->sandboxes) {
    // The same call again, by one who never heard of its answer.
    const bool is_ready = known.state() != kSandboxNotReady;
    if (is_ready && known.metadata().uid() == request.config().metadata().uid()) return ok_answer_with_id(id);
  }
  lens::PodSandbox sandbox;
  sandbox.set_id(fmt::format("sandbox-{:08}", ++last_number_));
  *sandbox.mutable_metadata() = request.config().metadata();
  sandbox.set_runtime_handler(request.runtime_handler());
  *sandbox.mutable_annotations() = request.config().annotations();
  records_->sandboxes[sandbox.id()] = sandbox;
  return ok_answer_with_id(sandbox.id());
}

cri::RuntimeResponse SimulatedRuntime::create(const std::string& bytes) {
  const auto request = read_request<lens::CreateContainerRequest>(bytes);
  const NextResponse next = std::exchange(next_create_, NextResponse::kSucceed);
  if (next == NextResponse::kRefuse) return refused();
  std::string id = find_unstarted(request);
  if (id.empty()) {
    id = container_id_of(++last_number_);
    const lens::ContainerConfig& config = request.config();
    records_->containers[id] = {.sandbox_id = request.sandbox_id(),
                                .config = config,
                                .cgroup = request.sandbox_config().linux().cgroup_parent() + '/' + id,
                                .resources = config.linux().resources(),
                                .pid = static_cast<std::int64_t>(last_number_)};
    records_->by_pid[records_->containers[id].pid] = id;
  }
  return next == NextResponse::kResponseLost ? lost_answer() : ok_answer_with_id(id);
}

/// A create whose answer was lost has made its container: the same create again is about that one, which stays as it
/// was made, as with CRI-O.
std::string SimulatedRuntime::find_unstarted(const lens::CreateContainerRequest& request) const {
  const lens::ContainerMetadata& wanted = request.config().metadata();
  for (const auto& [id, container] : records_->containers) {
    const lens::ContainerMetadata& metadata = container.config.metadata();
    if (container.sandbox_id == request.sandbox_id() && container.state == kCreated &&
        metadata.name() == wanted.name() && metadata.attempt() == wanted.attempt()) {
      return id;
    }
  }
  return {};
}

cri::RuntimeResponse SimulatedRuntime::start(const std::string& bytes) {
  const std::string id = read_request<lens::Target>(bytes).id();
  const auto found = records_->containers.find(id);
  if (found == records_->containers.end()) return no_such("container", id);
  // One that runs stays where it is.
  if (std::exchange(found->second.state, kRunning) != kRunning) follow_update(found->second);
  return ok_answer();
}

void SimulatedRuntime::set_sandbox(const std::string& sandbox_id, SandboxState state) {
  if (state == SandboxState::kGone) {
    records_->sandboxes.erase(sandbox_id);
  } else if (const auto sandbox = records_->sandboxes.find(sandbox_id); sandbox != records_->sandboxes.end()) {
    sandbox->second.set_state(state == SandboxState::kReady ? 0 : kSandboxNotReady);
  }
}

/// Its pod's uid and its name.
std::pair<std::string, std::string> SimulatedRuntime::name_of(const Container& container) const {
  const auto sandbox = records_->sandboxes.find(container.sandbox_id);
  const std::string uid = sandbox == records_->sandboxes.end() ? std::string() : sandbox->second.metadata().uid();
  return {uid, container.config.metadata().name()};
}

/// The kernel has it where it was told to be, and then where the other hand puts it.
void SimulatedRuntime::follow_update(Container& container) {
  container.kernel_cpus = set_of<CpuSet>(container.resources.cpuset_cpus());
  const auto hand = records_->hands.find(name_of(container));
  if (hand == records_->hands.end() || container.state != kRunning) return;
  container.kernel_cpus = hand->second.cpus;
  if (!hand->second.again) records_->hands.erase(hand);
}

void SimulatedRuntime::set_cpuset(const std::string& pod, const std::string& container, const CpuSet& cpus,
                                  bool again) {
  const std::pair name{pod, container};
  records_->hands.erase(name);
  if (cpus.empty()) return;
  records_->hands[name] = {cpus, again};
  for (auto& [id, known] : records_->containers) {
    if (known.state != kRunning || name_of(known) != name) continue;
    known.kernel_cpus = cpus;
    if (!again) records_->hands.erase(name);
  }
}

void SimulatedRuntime::set_stuck(const std::string& pod, const std::string& container, bool is_stuck) {
  if (is_stuck) {
    records_->stuck.insert({pod, container});
  } else {
    records_->stuck.erase({pod, container});
  }
}

bool SimulatedRuntime::would_leave_stuck_cpus(const Container& container, const CpuSet& cpus) const {
  return container.state == kRunning && records_->stuck.count(name_of(container)) != 0 && !cpus.empty() &&
         !container.kernel_cpus.is_subset_of(cpus);
}

const SimulatedRuntime::Container* SimulatedRuntime::find_running(std::int64_t pid) const {
  const auto id = records_->by_pid.find(pid);
  if (id == records_->by_pid.end()) return nullptr;
  const auto found = records_->containers.find(id->second);
  if (found == records_->containers.end() || found->second.state != kRunning) return nullptr;
  return &found->second;
}

std::optional<CpuSet> SimulatedRuntime::kernel_cpus(std::int64_t pid) const {
  const Container* container = find_running(pid);
  if (container == nullptr || container->kernel_cpus.empty()) return std::nullopt;
  return container->kernel_cpus;
}

operations::ToldResources SimulatedRuntime::kernel_resources(std::int64_t pid) const {
  const Container* container = find_running(pid);
  if (container == nullptr || tells_ == RuntimeTells::kProcessAlone) return {};
  const lens::Resources& now = container->resources;
  return {.qos = operations::qos_of_cgroup(container->cgroup),
          .cpu_period_us = now.cpu_period_us(),
          .cpu_quota_us = now.cpu_quota_us(),
          .cpu_shares = now.cpu_shares(),
          .cpu_weight = {},
          .memory_limit_bytes = now.memory_limit_bytes(),
          .oom_score_adj = container->config.linux().resources().oom_score_adj(),
          .hugepage_limit_bytes = {},
          .mems = set_of<NodeSet>(now.cpuset_mems())};
}

cri::RuntimeResponse SimulatedRuntime::stop(const std::string& bytes) {
  const std::string id = read_request<lens::Target>(bytes).id();
  const auto found = records_->containers.find(id);
  if (found == records_->containers.end()) return no_such("container", id);
  if (std::exchange(found->second.state, kExited) == kRunning) found->second.exit_code = kTerminated;
  return ok_answer();
}

cri::RuntimeResponse SimulatedRuntime::remove(const std::string& bytes) {
  records_->containers.erase(read_request<lens::Target>(bytes).id());
  return ok_answer();
}

cri::RuntimeResponse SimulatedRuntime::stop_pod(const std::string& bytes) {
  const std::string id = read_request<lens::Target>(bytes).id();
  for (auto& [container_id, container] : records_->containers) {
    if (container.sandbox_id != id) continue;
    if (std::exchange(container.state, kExited) == kRunning) container.exit_code = kTerminated;
  }
  if (const auto sandbox = records_->sandboxes.find(id); sandbox != records_->sandboxes.end())
    sandbox->second.set_state(kSandboxNotReady);
  return ok_answer();
}

cri::RuntimeResponse SimulatedRuntime::remove_pod(const std::string& bytes) {
  const std::string id = read_request<lens::Target>(bytes).id();
  std::erase_if(records_->containers, [&id](const auto& entry) { return entry.second.sandbox_id == id; });
  if (const auto sandbox = records_->sandboxes.find(id); sandbox != records_->sandboxes.end()) {
    const std::string uid = sandbox->second.metadata().uid();
    std::erase_if(records_->hands, [&uid](const auto& entry) { return entry.first.first == uid; });
    std::erase_if(records_->stuck, [&uid](const auto& entry) { return entry.first == uid; });
  }
  records_->sandboxes.erase(id);
  return ok_answer();
}

cri::RuntimeResponse SimulatedRuntime::update(const std::string& bytes, Caller caller) {
  const auto request = read_request<lens::UpdateContainerResourcesRequest>(bytes);
  const bool own = caller == Caller::kDaemon;
  const NextResponse next = own ? std::exchange(next_own_update_, NextResponse::kSucceed) : NextResponse::kSucceed;
  if (next == NextResponse::kRefuse) return refused();
  const auto found = records_->containers.find(request.container_id());
  if (found == records_->containers.end()) return no_such("container", request.container_id());
  if (would_leave_stuck_cpus(found->second, set_of<CpuSet>(request.linux().cpuset_cpus()))) return busy();
  update_resources(found->second.resources, request.linux());
  if (!request.linux().cpuset_cpus().empty()) follow_update(found->second);
  return next == NextResponse::kResponseLost ? lost_answer() : ok_answer();
}

cri::RuntimeResponse SimulatedRuntime::status(const std::string& bytes) const {
  const std::string id = read_request<lens::ContainerStatusRequest>(bytes).container_id();
  const auto found = records_->containers.find(id);
  if (found == records_->containers.end()) return no_such("container", id);
  lens::ContainerStatusResponse response;
  lens::ContainerStatus& status = *response.mutable_status();
  status.set_id(id);
  *status.mutable_metadata() = found->second.config.metadata();
  status.set_state(found->second.state);
  status.set_exit_code(found->second.exit_code);
  *status.mutable_annotations() = found->second.config.annotations();
  if (tells_ == RuntimeTells::kNothing) return ok_answer(response);
  lens::Entry& info = *response.add_info();
  info.set_key("info");
  info.set_value(verbose_info(found->second));
  return ok_answer(response);
}

/// As the runtime tells it, as far as topolet reads it.
std::string SimulatedRuntime::verbose_info(const Container& container) const {
  const lens::Resources& now = container.resources;
  nlohmann::json cpu = {{"period", now.cpu_period_us()}, {"shares", now.cpu_shares()}};
  if (now.cpu_quota_us() != 0) cpu["quota"] = now.cpu_quota_us();
  if (!now.cpuset_cpus().empty()) cpu["cpus"] = now.cpuset_cpus();
  if (!now.cpuset_mems().empty()) cpu["mems"] = now.cpuset_mems();
  nlohmann::json resources = {{"cpu", std::move(cpu)}};
  if (now.memory_limit_bytes() != 0) resources["memory"] = {{"limit", now.memory_limit_bytes()}};
  nlohmann::json info = {{"sandboxID", container.sandbox_id}, {"pid", container.state == kRunning ? container.pid : 0}};
  if (tells_ == RuntimeTells::kAll) info["config"] = created_as(container.config);
  if (tells_ == RuntimeTells::kAll || tells_ == RuntimeTells::kSpec) {
    info["runtimeSpec"] = {{"process", {{"oomScoreAdj", container.config.linux().resources().oom_score_adj()}}},
                           {"linux", {{"cgroupsPath", container.cgroup}, {"resources", std::move(resources)}}}};
  }
  return info.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string SimulatedRuntime::next_container_id(const lens::CreateContainerRequest& request) const {
  return find_unstarted(request).empty() ? container_id_of(last_number_ + 1) : std::string();
}

bool SimulatedRuntime::has_container(const std::string& container_id) const {
  return records_->containers.count(container_id) != 0;
}

std::optional<std::int32_t> SimulatedRuntime::exit_code_of(const std::string& container_id) const {
  const auto found = records_->containers.find(container_id);
  if (found == records_->containers.end() || found->second.state != kExited) return std::nullopt;
  return found->second.exit_code;
}

std::vector<std::string> SimulatedRuntime::containers_in(const std::string& sandbox_id) const {
  std::vector<std::string> ids;
  for (const auto& [id, container] : records_->containers) {
    if (container.sandbox_id == sandbox_id) ids.push_back(id);
  }
  return ids;
}

std::string SimulatedRuntime::runtime_handler_of(const std::string& sandbox_id) const {
  const auto found = records_->sandboxes.find(sandbox_id);
  return found == records_->sandboxes.end() ? std::string() : found->second.runtime_handler();
}

std::vector<RunningContainer> SimulatedRuntime::running() const {
  std::vector<RunningContainer> running;
  for (const auto& [id, container] : records_->containers) {
    const auto sandbox = records_->sandboxes.find(container.sandbox_id);
    if (container.state != kRunning || sandbox == records_->sandboxes.end()) continue;
    running.push_back({.pod = sandbox->second.metadata().uid(),
                       .container = container.config.metadata().name(),
                       .attempt = container.config.metadata().attempt(),
                       .cpus = container.kernel_cpus,
                       .mems = set_of<NodeSet>(container.resources.cpuset_mems()),
                       .files = {}});
    for (const lens::Entry& file : container.resources.unified()) running.back().files[file.key()] = file.value();
  }
  return running;
}

}  // namespace topolet::simulate
