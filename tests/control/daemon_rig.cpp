#include "tests/control/daemon_rig.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "store/database.hpp"
#include "tests/support/eventually.hpp"

namespace topolet::testing {

namespace {

constexpr std::chrono::minutes kPatience{1};
constexpr std::int64_t kMemoryBytes = 64 << 20;

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
    kubelet_ = std::make_unique<integration::CriClient>("unix://" + file("topolet.sock"), kPatience);
    control_ = control::v1::Control::NewStub(connect(control_socket()));
    control::v1::StatusResponse status;
    return kubelet_->version() && control_->Status(in_time().get(), {}, &status).ok() && status.reconciled();
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

Result<std::string> DaemonRig::create_container(const std::string& name, int cpus) {
  integration::Pod pod;
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.name_space = "default";
  pod.tells_resources = false;
  if (cpus > 0) pod.resources = integration::guaranteed(cpus * 1000, kMemoryBytes);
  if (Status ran = kubelet_->run(pod); !ran) return ran.error();
  return kubelet_->create(pod, {});
}

grpc::Status DaemonRig::create(const std::string& pod, int cpus) {
  const auto created = create_container(pod, cpus);
  return created ? grpc::Status() : as_grpc(created.error());
}

grpc::Status DaemonRig::run(const std::string& pod, int cpus) {
  const auto created = create_container(pod, cpus);
  return as_grpc(created ? kubelet_->start(*created) : created.error());
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

bool DaemonRig::eventually(const std::function<bool()>& condition) { return testing::eventually(condition); }

}  // namespace topolet::testing
