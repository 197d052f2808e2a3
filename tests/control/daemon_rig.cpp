#include "tests/control/daemon_rig.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "store/database.hpp"

namespace topolet::testing {

namespace api = ::runtime::v1;

namespace {

constexpr std::chrono::seconds kPatience{20};

std::unique_ptr<grpc::ClientContext> in_time() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kPatience);
  return context;
}

/// Without the cache of connections, in which a dead daemon's socket would stay for a while.
std::shared_ptr<grpc::Channel> connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

DaemonRig::DaemonRig() : runtime_(std::make_unique<ServedRuntime>(file("runtime.sock"))) { configure(""); }

DaemonRig::~DaemonRig() { process_.reset(); }

// store-patience: a busy disk must not put a `gap` among the rows that a test counts.
void DaemonRig::configure(const std::string& plugins, const std::string& placement, const std::string& daemon) {
  directory_.write("topolet.conf",
                   fmt::format("[daemon]\nlisten = {}\ncontrol = {}\nruntime = {}\nstate-dir = {}\nplugin-dir = {}\n"
                               "store-patience = 20s\n{}\n"
                               "[placement]\nmin-shared-cpus = 0\n{}\n[plugins]\n{}\n",
                               file("topolet.sock"), control_socket(), file("runtime.sock"), state_dir(), plugin_dir,
                               daemon, placement, plugins));
}

bool DaemonRig::start(const std::vector<std::string>& more_flags) {
  std::vector<std::string> command = launcher;
  command.insert(command.end(), {program, "--config", config()});
  command.insert(command.end(), more_flags.begin(), more_flags.end());
  process_ = std::make_unique<Process>(std::move(command), file("log"));
  const auto version = [this] {
    cri_ = api::RuntimeService::NewStub(connect(file("topolet.sock")));
    control_ = control::v1::Control::NewStub(connect(control_socket()));
    api::VersionResponse answer;
    control::v1::StatusResponse status;
    return cri_->Version(in_time().get(), {}, &answer).ok() && control_->Status(in_time().get(), {}, &status).ok() &&
           status.reconciled();
  };
  bool serves = false;
  EXPECT_TRUE(eventually([&] { return process_->has_ended() || (serves = version()); }))
      << (std::filesystem::is_regular_file(file("log")) ? log() : "");
  return serves;
}

int DaemonRig::stop() {
  process_->signal(SIGTERM);
  return process_->wait();
}

control::v1::Plugin DaemonRig::plugin(const std::string& id) {
  control::v1::ListPluginsResponse response;
  const grpc::Status status = control_->ListPlugins(in_time().get(), {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const control::v1::Plugin& plugin : response.plugins()) {
    if (plugin.id() == id) return plugin;
  }
  return {};
}

grpc::Status DaemonRig::reset(const std::string& id) {
  control::v1::ResetPluginRequest request;
  request.set_id(id);
  control::v1::ResetPluginResponse response;
  return control_->ResetPlugin(in_time().get(), request, &response);
}

grpc::Status DaemonRig::reload(control::v1::ReloadResponse* response) {
  control::v1::ReloadResponse ignored;
  return control_->Reload(in_time().get(), {}, response != nullptr ? response : &ignored);
}

grpc::Status DaemonRig::create(const std::string& pod, int cpus, std::string* container_id) {
  api::RunPodSandboxRequest sandbox;
  api::PodSandboxMetadata& metadata = *sandbox.mutable_config()->mutable_metadata();
  metadata.set_name(pod);
  metadata.set_uid("uid-" + pod);
  metadata.set_namespace_("default");
  sandbox.mutable_config()->mutable_linux()->set_cgroup_parent(
      (cpus > 0 ? "/kubepods/pod" : "/kubepods/besteffort/pod") + pod);
  api::RunPodSandboxResponse made;
  const grpc::Status status = cri_->RunPodSandbox(in_time().get(), sandbox, &made);
  if (!status.ok()) return status;

  api::CreateContainerRequest request;
  request.set_pod_sandbox_id(made.pod_sandbox_id());
  *request.mutable_sandbox_config() = sandbox.config();
  request.mutable_config()->mutable_metadata()->set_name("main");
  api::LinuxContainerResources& resources = *request.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpu_shares(cpus > 0 ? cpus * 1024 : 2);
  resources.set_oom_score_adj(cpus > 0 ? -997 : 1000);
  if (cpus > 0) {
    resources.set_cpu_period(100000);
    resources.set_cpu_quota(std::int64_t{cpus} * 100000);
  }
  api::CreateContainerResponse response;
  grpc::Status created = cri_->CreateContainer(in_time().get(), request, &response);
  if (container_id != nullptr) *container_id = response.container_id();
  return created;
}

grpc::Status DaemonRig::run(const std::string& pod, int cpus) {
  api::StartContainerRequest request;
  const grpc::Status created = create(pod, cpus, request.mutable_container_id());
  if (!created.ok()) return created;
  api::StartContainerResponse response;
  return cri_->StartContainer(in_time().get(), request, &response);
}

std::string DaemonRig::log() const {
  std::ostringstream text;
  text << std::ifstream(file("log")).rdbuf();
  return text.str();
}

bool DaemonRig::logs(const std::string& text) const {
  return eventually([&] { return log().find(text) != std::string::npos; });
}

std::vector<std::string> DaemonRig::query(const std::string& sql) const {
  std::vector<std::string> values;
  auto database = store::Database::open(state_dir() + "/state.db", store::Database::Access::kReadOnly);
  if (!database) return values;
  auto rows = database->prepare(sql, "ask for a test");
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  while (rows) {
    const auto more = rows->next();
    if (!more || !*more) break;
    values.push_back(rows->text(0));
  }
  return values;
}

std::vector<std::string> DaemonRig::audited() const {
  return query(
      "SELECT event || ': ' || reason FROM audit WHERE container = '' AND event NOT LIKE 'store-%' ORDER BY at_ms, "
      "decision");
}

bool DaemonRig::eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace topolet::testing
