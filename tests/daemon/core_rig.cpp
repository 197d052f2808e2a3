#include "tests/daemon/core_rig.hpp"

#include <array>
#include <future>
#include <utility>

#include "core/cri/messages/intercepted_methods.hpp"
#include "core/placement/decide.hpp"
#include "store/database.hpp"

namespace topolet::testing {
namespace {

constexpr const char* kMachine = "pack:1 numa:2 core:2 pu:1";

constexpr std::int64_t kMemoryBytes = 64 << 20;

constexpr std::chrono::minutes kPatience{1};

std::unique_ptr<grpc::ClientContext> in_time() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kPatience);
  return context;
}

integration::Resources resources_of(std::int64_t milli) {
  return milli > 0 ? integration::guaranteed(milli, kMemoryBytes) : integration::besteffort();
}

integration::Pod pod_of(const std::string& name) {
  integration::Pod pod;
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.name_space = "default";
  pod.tells_resources = false;
  return pod;
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
  hooks.on_call = [this](const std::shared_ptr<cri::Call>& call) { on_call(call); };
  hooks.on_observed = [this](const cri::ObservedMessage& seen) { front_->on_observed(seen); };
  hooks.on_connected = [this] { front_->on_connected(); };
  proxy_ = std::make_unique<cri::Proxy>(cri::ProxyOptions{.runtime_endpoint = runtime_->recorder().endpoint()},
                                        std::move(hooks), *log_);

  const auto topology = *topology::discover({.synthetic = kMachine, .offline = offline});
  runtime_client_ = std::make_unique<cri::RuntimeClient>(*proxy_, options.demand_rules);
  engine_ = std::make_unique<engine::Engine>(
      options,
      engine::Engine::Deps{
          .runtime = *runtime_client_,
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
  front_ = std::make_unique<cri::CriFront>(cri::CriFront::Deps{*engine_, options.demand_rules, *log_});
  ASSERT_TRUE(engine_->start().has_value());
  proxy_->start();
  listener_->start([this](UniqueFd connection) { return proxy_->accept(std::move(connection)); });
  kubelet_ = std::make_unique<integration::CriClient>("unix://" + file("topolet.sock"), kPatience);
}

std::unique_ptr<engine::Loop> CoreRig::make_loop() {
  if (!time_stands) return std::make_unique<engine::ThreadLoop>();
  auto loop = std::make_unique<ManualLoop>(clock_);
  loop_ = loop.get();
  return loop;
}

void CoreRig::on_call(const std::shared_ptr<cri::Call>& call) {
  const std::string method(call->method());
  front_->on_call(call);
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
  constexpr std::array<const char*, 9> kNames = {"placed", "started",     "moved",  "resized", "released",
                                                 "exited", "pod removed", "denied", "unpinned"};
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
  front_.reset();
  engine_.reset();
  runtime_client_.reset();
  proxy_.reset();
  listener_.reset();
  store_.reset();
}

std::string CoreRig::run_pod(const std::string& name, const std::string& handler,
                             const std::map<std::string, std::string>& annotations) {
  integration::Pod pod = pod_of(name);
  pod.runtime_handler = handler;
  pod.annotations = annotations;
  const grpc::Status status = as_grpc(kubelet_->run(pod));
  EXPECT_TRUE(status.ok()) << status.error_message();
  sandboxes_[name] = pod.sandbox_id;
  return pod.sandbox_id;
}

grpc::Status CoreRig::create(const CreateSpec& ask, std::string& id) { return create(ask, id, *in_time()); }

grpc::Status CoreRig::create(const CreateSpec& ask, std::string& id, grpc::ClientContext& context) {
  if (sandboxes_.count(ask.pod) == 0) run_pod(ask.pod);
  const integration::Resources resources = resources_of(ask.cpu_milli());
  integration::Pod pod = pod_of(ask.pod);
  pod.sandbox_id = sandboxes_.at(ask.pod);
  pod.annotations = ask.pod_annotations;
  pod.tells_resources = ask.pod_cpus > 0;
  pod.resources = pod.tells_resources ? resources_of(ask.pod_cpus * 1000) : resources;
  const integration::ContainerSpec container{.name = ask.name,
                                             .attempt = ask.attempt,
                                             .resources = resources,
                                             .cpuset_cpus = ask.cpuset,
                                             .cpuset_mems = ask.mems,
                                             .annotations = ask.annotations,
                                             .env = ask.env};
  const auto created = kubelet_->create(create_request(pod, container), context);
  id = created.value_or("");
  return created ? grpc::Status() : as_grpc(created.error());
}

grpc::Status CoreRig::start_container(const std::string& id) { return start_container(id, *in_time()); }

grpc::Status CoreRig::start_container(const std::string& id, grpc::ClientContext& context) {
  return as_grpc(kubelet_->start(id, context));
}

grpc::Status CoreRig::resize(const std::string& id, std::int64_t milli) {
  runtime::v1::LinuxContainerResources resources = integration::as_the_kubelet_sends(resources_of(milli));
  // The kubelet's resize of CPUs says nothing of memory.
  resources.clear_memory_limit_in_bytes();
  resources.clear_oom_score_adj();
  return update(id, resources);
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
