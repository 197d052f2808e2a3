#include "tests/daemon/core_rig.hpp"

#include <array>
#include <future>
#include <utility>

#include "core/cri/messages/intercepted_methods.hpp"
#include "store/database.hpp"

namespace topolet::testing {

namespace api = ::runtime::v1;

namespace {

constexpr const char* kMachine = "pack:1 numa:2 core:2 pu:1";

std::unique_ptr<grpc::ClientContext> within(std::chrono::milliseconds timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + timeout);
  return context;
}

constexpr std::chrono::minutes kPatience{1};

/// As the kubelet writes a request that is its own limit.
void set_cpu(std::int64_t milli, api::LinuxContainerResources& resources) {
  resources.set_cpu_shares(milli > 0 ? milli * 1024 / 1000 : 2);
  if (milli <= 0) return;
  resources.set_cpu_period(100000);
  resources.set_cpu_quota(milli * 100);
}

}  // namespace

void CoreRig::start() {
  auto store = store::Store::open({.directory = directory_.path() / "state",
                                   .boot_id = "boot",
                                   .now_ms = 1,
                                   .durability = {},
                                   .check_rows = engine::Engine::check_stored});
  ASSERT_TRUE(store.has_value()) << store.error().message;
  store_ = *std::move(store);
  auto listener = cri::Listener::open({.path = file("topolet.sock")}, *log_);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  listener_ = *std::move(listener);

  cri::ProxyHooks hooks;
  hooks.intercepted = cri::intercepted_names();
  hooks.observed = cri::observed_names();
  hooks.on_call = [this](std::shared_ptr<cri::Call> call) { on_call(std::move(call)); };
  hooks.on_observed = [this](const cri::ObservedMessage& seen) { engine_->on_observed(seen); };
  hooks.on_connected = [this] { engine_->on_connected(); };
  proxy_ = std::make_unique<cri::Proxy>(cri::ProxyOptions{.runtime_endpoint = runtime_->recorder().endpoint()},
                                        std::move(hooks), *log_);

  const auto topology = *topology::discover({.synthetic = kMachine, .offline = offline});
  engine_ = std::make_unique<engine::Engine>(
      options,
      engine::Engine::Deps{
          .runtime = *proxy_,
          .store = *store_,
          .cpus = {topology->allowed, reserved, isolated},
          .placer = {.topology = topology,
                     .candidates = placement::make_candidates(*topology, topology->allowed),
                     .rules = rules,
                     .decide = [this](const std::shared_ptr<const placement::PolicyRequest>& request,
                                      const placement::PlacementRules& with) { return decide(*request, with, votes); }},
          .kernel = engine::ProcessCgroups(),
          .clock = time_stands ? clock_.clock() : Clock(),
          .log = *log_,
          .any_plugin_handles_events = [] { return true; },
          .publish_event = [this](const std::shared_ptr<const plugin::ContainerEvent>& h) { record_event(*h); },
          .tick_plugins = [this](const auto&) { return take_wishes(); },
          .observers = {},
          .loop = make_loop()});
  ASSERT_TRUE(engine_->start().has_value());
  proxy_->start();
  listener_->start([this](UniqueFd connection) { return proxy_->accept(std::move(connection)); });
  client_ = api::RuntimeService::NewStub(
      grpc::CreateChannel("unix://" + file("topolet.sock"), grpc::InsecureChannelCredentials()));
}

std::unique_ptr<engine::Loop> CoreRig::make_loop() {
  if (!time_stands) return std::make_unique<engine::ThreadLoop>();
  auto loop = std::make_unique<ManualLoop>(clock_);
  loop_ = loop.get();
  return loop;
}

void CoreRig::on_call(std::shared_ptr<cri::Call> call) {
  const std::string method(call->method());
  engine_->on_call(std::move(call));
  MutexLock lock(mutex_);
  ++arrived_[method];
}

int CoreRig::arrived(const std::string& method) const {
  MutexLock lock(mutex_);
  const auto found = arrived_.find(method);
  return found == arrived_.end() ? 0 : found->second;
}

void CoreRig::settle() const {
  std::promise<void> done;
  on_loop([&] { done.set_value(); });
  done.get_future().wait();
}

void CoreRig::record_event(const plugin::ContainerEvent& container_event) {
  constexpr std::array<const char*, 5> kNames = {"placed", "started", "moved", "resized", "released"};
  MutexLock lock(mutex_);
  published_events_.push_back(std::string(kNames.at(static_cast<std::size_t>(container_event.kind))) + ' ' +
                              container_event.workload.pod_name + ' ' + container_event.placement.cpus.to_string());
}

std::vector<std::string> CoreRig::published_events() const {
  MutexLock lock(mutex_);
  return published_events_;
}

void CoreRig::request_move(const std::string& pod) {
  MutexLock lock(mutex_);
  wishes_.push_back({"test", {"uid-" + pod, "main", 0, sandboxes_.at(pod)}, true, "to see it move"});
}

std::vector<plugin::MoveRequest> CoreRig::take_wishes() {
  MutexLock lock(mutex_);
  return std::exchange(wishes_, {});
}

void CoreRig::stop() {
  if (listener_) listener_->stop();
  if (engine_) engine_->stop();
  if (proxy_) proxy_->stop();
  engine_.reset();
  proxy_.reset();
  listener_.reset();
  store_.reset();
}

std::string CoreRig::run_pod(const std::string& name, const std::string& handler,
                             const std::map<std::string, std::string>& annotations) {
  api::RunPodSandboxRequest request;
  request.mutable_config()->mutable_annotations()->insert(annotations.begin(), annotations.end());
  api::PodSandboxMetadata& metadata = *request.mutable_config()->mutable_metadata();
  metadata.set_name(name);
  metadata.set_uid("uid-" + name);
  metadata.set_namespace_("default");
  request.set_runtime_handler(handler);
  api::RunPodSandboxResponse response;
  const grpc::Status status = client_->RunPodSandbox(within(kPatience).get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  sandboxes_[name] = response.pod_sandbox_id();
  return response.pod_sandbox_id();
}

grpc::Status CoreRig::create(const CreateSpec& ask, std::string& id) { return create(ask, id, *within(kPatience)); }

grpc::Status CoreRig::create(const CreateSpec& ask, std::string& id, grpc::ClientContext& context) {
  if (sandboxes_.count(ask.pod) == 0) run_pod(ask.pod);
  api::CreateContainerRequest request;
  request.set_pod_sandbox_id(sandboxes_.at(ask.pod));
  api::PodSandboxConfig& pod = *request.mutable_sandbox_config();
  pod.mutable_metadata()->set_name(ask.pod);
  pod.mutable_metadata()->set_uid("uid-" + ask.pod);
  pod.mutable_metadata()->set_namespace_("default");
  const std::int64_t milli = ask.cpu_milli();
  pod.mutable_linux()->set_cgroup_parent(milli > 0 ? "/kubepods/poduid-" + ask.pod
                                                   : "/kubepods/besteffort/poduid-" + ask.pod);
  pod.mutable_annotations()->insert(ask.pod_annotations.begin(), ask.pod_annotations.end());
  if (ask.pod_cpus > 0) pod.mutable_linux()->mutable_resources()->set_cpu_shares(ask.pod_cpus * 1024);
  api::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name(ask.name);
  config.mutable_metadata()->set_attempt(ask.attempt);
  config.mutable_annotations()->insert(ask.annotations.begin(), ask.annotations.end());
  for (const auto& [key, value] : ask.env) {
    api::KeyValue& variable = *config.add_envs();
    variable.set_key(key);
    variable.set_value(value);
  }
  api::LinuxContainerResources& resources = *config.mutable_linux()->mutable_resources();
  resources.set_oom_score_adj(milli > 0 ? -997 : 1000);
  set_cpu(milli, resources);
  if (milli > 0) resources.set_memory_limit_in_bytes(64 << 20);
  resources.set_cpuset_cpus(ask.cpuset);
  resources.set_cpuset_mems(ask.mems);
  api::CreateContainerResponse response;
  grpc::Status status = client_->CreateContainer(&context, request, &response);
  id = response.container_id();
  return status;
}

grpc::Status CoreRig::start_container(const std::string& id) { return start_container(id, *within(kPatience)); }

grpc::Status CoreRig::start_container(const std::string& id, grpc::ClientContext& context) {
  api::StartContainerRequest request;
  request.set_container_id(id);
  api::StartContainerResponse response;
  return client_->StartContainer(&context, request, &response);
}

grpc::Status CoreRig::stop_container(const std::string& id) {
  api::StopContainerRequest request;
  request.set_container_id(id);
  api::StopContainerResponse response;
  return client_->StopContainer(within(kPatience).get(), request, &response);
}

grpc::Status CoreRig::remove_container(const std::string& id) {
  api::RemoveContainerRequest request;
  request.set_container_id(id);
  api::RemoveContainerResponse response;
  return client_->RemoveContainer(within(kPatience).get(), request, &response);
}

grpc::Status CoreRig::update(const std::string& id, const api::LinuxContainerResources& resources) {
  api::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  *request.mutable_linux() = resources;
  api::UpdateContainerResourcesResponse response;
  return client_->UpdateContainerResources(within(kPatience).get(), request, &response);
}

grpc::Status CoreRig::resize(const std::string& id, std::int64_t milli) {
  api::LinuxContainerResources resources;
  set_cpu(milli, resources);
  return update(id, resources);
}

grpc::Status CoreRig::remove_pod(const std::string& sandbox_id) {
  api::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  api::RemovePodSandboxResponse response;
  return client_->RemovePodSandbox(within(kPatience).get(), request, &response);
}

grpc::Status CoreRig::stop_pod(const std::string& sandbox_id) {
  api::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  api::StopPodSandboxResponse response;
  return client_->StopPodSandbox(within(kPatience).get(), request, &response);
}

void CoreRig::list() {
  api::ListContainersResponse response;
  EXPECT_TRUE(client_->ListContainers(within(kPatience).get(), {}, &response).ok());
}

std::string CoreRig::run(const CreateSpec& ask) {
  std::string id;
  const grpc::Status created = create(ask, id);
  EXPECT_TRUE(created.ok()) << created.error_message();
  const grpc::Status started = start_container(id);
  EXPECT_TRUE(started.ok()) << started.error_message();
  return id;
}

std::vector<std::string> CoreRig::query(const std::string& sql) const {
  std::vector<std::string> rows;
  auto database = store::Database::open(directory_.path() / "state" / "state.db", store::Database::Access::kReadOnly);
  if (!database) return rows;
  auto statement = database->prepare(sql, "ask for a test");
  EXPECT_TRUE(statement.has_value()) << statement.error().message;
  while (true) {
    const auto more = statement->next();
    if (!more || !*more) return rows;
    rows.push_back(statement->text(0));
  }
}

std::string CoreRig::held(const std::string& pod) const {
  const auto rows = query("SELECT cpus FROM current_placements WHERE pod = '" + pod + "'");
  return rows.empty() ? "" : rows.front();
}

}  // namespace topolet::testing
