// Values of environment variables and of others' annotations, on all ways of a create through topoletd: they must not
// turn up in anything that it writes or answers. What topoletd stores of annotations is what plugins decide by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/control/daemon_rig.hpp"
#include "tests/support/cri.grpc.pb.h"

namespace topolet::testing {
namespace {

namespace api = ::runtime::v1;
namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kValue = "hunter2value";
constexpr const char* kAnnotation = "hunter2annotation";
constexpr const char* kElsewhere = "hunter2elsewhere";

const std::vector<std::string> kVariables = {"PASSWORD",       "NVIDIA_VISIBLE_DEVICES",    "ASCEND_VISIBLE_DEVICES",
                                             "CARD",           "VA_VISIBLE_DEVICES",        "PCIDEVICE_X_INFO",
                                             "TOPOLET_POLICY", "NVIDIA_DRIVER_CAPABILITIES"};
const std::vector<std::string> kForeignAnnotations = {
    "example.com/token", "cdi.k8s.io/gpu", "kubectl.kubernetes.io/last-applied-configuration", "nottopolet.io/cpus"};

class SecretsTest : public ::testing::Test {
 protected:
  SecretsTest() {
    const std::string plugins = rig_.file("plugins");
    fs::create_directory(plugins);
    for (const fs::path& from : {fs::path(TOPOLET_BUILT_PLUGINS), fs::path(TOPOLET_BROKEN_DIR)}) {
      for (const char* name : {"numa.so", "gpu.so", "smt.so", "throws.so", "nonsense.so"}) {
        if (fs::exists(from / name)) fs::copy_file(from / name, fs::path(plugins) / name);
      }
    }
    rig_.plugin_dir = plugins;
  }

  void start(const std::string& plugins) {
    rig_.configure(plugins, "", "log-level = debug");
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }

  /// Whatever else a request has that may hold a secret.
  static void add_what_is_nobodys_business(api::CreateContainerRequest& request) {
    api::ContainerConfig& config = *request.mutable_config();
    config.mutable_image()->set_image(kElsewhere);
    config.mutable_image()->set_user_specified_image(kElsewhere);
    config.add_command(kElsewhere);
    config.add_args(kElsewhere);
    config.set_working_dir(kElsewhere);
    config.set_log_path(kElsewhere);
    (*config.mutable_labels())[kElsewhere] = kElsewhere;
    config.add_mounts()->set_host_path(kElsewhere);
    config.mutable_mounts(0)->set_container_path(kElsewhere);
    config.mutable_linux()->mutable_security_context()->set_run_as_username(kElsewhere);
    request.mutable_sandbox_config()->set_hostname(kElsewhere);
    request.mutable_sandbox_config()->set_log_directory(kElsewhere);
    (*request.mutable_sandbox_config()->mutable_linux()->mutable_sysctls())[kElsewhere] = kElsewhere;
  }

  /// Creates a container with that value in all variables, and others' annotations on the pod and the container.
  grpc::Status create(const std::string& pod, int cpus, const std::string& value,
                      const std::vector<std::pair<std::string, std::string>>& ours = {}) {
    integration::Pod sandbox;
    sandbox.name = pod;
    sandbox.uid = "uid-" + pod;
    sandbox.resources = integration::guaranteed(std::int64_t{cpus} * 1000, 64 << 20);
    for (const std::string& key : kForeignAnnotations) {
      sandbox.annotations[key] = std::string(kAnnotation) + "," + kAnnotation + "/x=0";
    }
    for (const auto& [key, text] : ours) sandbox.annotations[key] = text;
    if (const Status ran = rig_.kubelet().run(sandbox); !ran) return as_grpc(ran);
    integration::ContainerSpec container{.annotations = sandbox.annotations};
    for (const std::string& variable : kVariables) container.env[variable] = value;
    api::CreateContainerRequest request = create_request(sandbox, container);
    add_what_is_nobodys_business(request);
    const auto created = rig_.kubelet().create(request);
    return as_grpc(created ? rig_.kubelet().start(*created) : created.error());
  }

  /// Every way that a create can take.
  void create_all() {
    int number = 0;
    for (const std::string& value : {std::string(kValue), std::string("0,") + kValue, std::string(kValue) + "-3",
                                     std::string("nvidia.com/gpu=") + kValue, std::string("/dev/") + kValue,
                                     std::string("{\"0000:00:00.0\":{\"x\":\"") + kValue + "\"}}"}) {
      for (const int cpus : {1, 9999})
        EXPECT_THAT(told(create("p" + std::to_string(++number), cpus, value)), Not(HasSubstr("hunter2")));
    }
    for (const char* name : {"cpus", "isolated", "containers", "numa-policy", "smt", "cpu-profile", "unknown"}) {
      const std::string key = std::string("topolet.io/") + name;
      EXPECT_THAT(told(create("p" + std::to_string(++number), 1, kValue, {{key, "wrong"}})), Not(HasSubstr("hunter2")));
    }
    rig_.runtime().next_create(ServedRuntime::Fate::kRefused);
    create("refused", 1, kValue);
  }
  static std::string told(const grpc::Status& status) { return status.error_message(); }

  std::string control_answers() {
    std::string answers;
    control::v1::ListPluginsResponse plugins;
    control::v1::StatusResponse status;
    grpc::ClientContext first;
    grpc::ClientContext second;
    EXPECT_TRUE(rig_.control().ListPlugins(&first, {}, &plugins).ok());
    EXPECT_TRUE(rig_.control().Status(&second, {}, &status).ok());
    return plugins.SerializeAsString() + status.SerializeAsString();
  }

  std::string all_rows(const std::string& columns, const std::string& table) const {
    std::string text;
    for (const std::string& row : rig_.query("SELECT " + columns + " FROM " + table)) text += row + '\n';
    return text;
  }

  void expect_no_secrets() {
    EXPECT_THAT(control_answers(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(all_rows("coalesce(reason, '') || coalesce(verdicts, '') || coalesce(settings, '')", "decided"),
                Not(HasSubstr("hunter2")));
    EXPECT_THAT(all_rows("coalesce(message, '')", "outcome"), Not(HasSubstr("hunter2")));
    EXPECT_THAT(all_rows("reason", "audit"), Not(HasSubstr("hunter2")));
    EXPECT_EQ(rig_.stop(), 0);
    EXPECT_THAT(rig_.log(), Not(HasSubstr("hunter2")));
    for (const auto& entry : fs::recursive_directory_iterator(rig_.state_dir())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      EXPECT_THAT(bytes, Not(HasSubstr(kValue))) << entry.path();
      EXPECT_THAT(bytes, Not(HasSubstr(kElsewhere))) << entry.path();
    }
  }

  DaemonRig rig_;
};

TEST_F(SecretsTest, StayOutOfEverythingWithOurPlugins) {
  start("enable = numa\nenable = gpu\nenable = smt");
  create_all();
  expect_no_secrets();
}

TEST_F(SecretsTest, StayOutOfDenialsByRequiredPlugins) {
  start(
      "enable = numa\nenable = gpu\nenable = smt\nrequired.numa = true\nrequired.gpu = true\nrequired.smt = true\n"
      "[numa]\npolicy = single-numa-node\n[gpu]\naffinity = require");
  create_all();
  expect_no_secrets();
}

TEST_F(SecretsTest, StayOutOfWhatIsSaidOfBrokenPlugins) {
  start("enable = numa\nenable = throws\nenable = nonsense\non-failure.throws = closed");
  create_all();
  expect_no_secrets();
}

TEST_F(SecretsTest, LogHasALineForEachRecordWhateverNamesThereAre) {
  start("enable = numa");
  const std::string name = "a\n2026-01-01T00:00:00.000+00:00 error forged\x1b[2J\u009b\u202e";
  create(name, 1, "x");
  create(name + "big", 9999, "x");
  EXPECT_EQ(rig_.stop(), 0);
  const std::string log = rig_.log();
  EXPECT_THAT(log, HasSubstr(R"(a\n2026-01-01T00:00:00.000+00:00 error forged\x1b[2J\u{9b}\u{202e})"));
  EXPECT_THAT(log, Not(HasSubstr("\n2026-01-01T00:00:00.000+00:00 error forged")));
  EXPECT_THAT(log, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace topolet::testing
