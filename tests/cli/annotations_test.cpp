// Names in annotations that nobody reads, told by a real topoletd and by the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/support/cri.grpc.pb.h"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "hunter2";

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class AnnotationsTest : public ::testing::Test {
 protected:
  AnnotationsTest() {
    const std::string plugins = rig_.file("plugins");
    fs::create_directory(plugins);
    for (const fs::path& from : {fs::path(TOPOLET_BUILT_PLUGINS), fs::path(TOPOLET_BROKEN_DIR)}) {
      for (const char* name : {"numa.so", "smt.so", "annotated.so"}) {
        if (fs::exists(from / name)) fs::copy_file(from / name, fs::path(plugins) / name);
      }
    }
    rig_.plugin_dir = plugins;
  }

  void start(const std::string& plugins, const std::string& placement = "") {
    rig_.configure(plugins, placement);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }

  void run_pod(const std::string& pod, const std::map<std::string, std::string>& annotations) {
    pod_.name = pod;
    pod_.uid = "uid-" + pod;
    pod_.name_space = "default";
    pod_.annotations = annotations;
    ASSERT_TRUE(rig_.kubelet().run(pod_));
  }
  /// In that pod; it asks for nothing, or for more CPUs than there are.
  grpc::Status create(const std::string& container, bool too_much = false, std::uint32_t attempt = 0) {
    integration::Pod pod = pod_;
    if (too_much) pod.resources = integration::guaranteed(9'999'000, 64 << 20);
    const auto created = rig_.kubelet().create(pod, {.name = container, .attempt = attempt});
    return created ? grpc::Status() : as_grpc(created.error());
  }
  std::string explained(const std::string& container) {
    const Said said = topolet({"explain", container, "--state-dir", rig_.state_dir()});
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  }
  std::string log_at_end() {
    EXPECT_EQ(rig_.stop(), 0);
    return rig_.log();
  }
  Said check_config() { return topolet({"config", "check", rig_.config()}); }

  DaemonRig rig_;
  integration::Pod pod_;
};

TEST_F(AnnotationsTest, AreToldInTheReasonByExplainAndOnceAPodInTheLog) {
  start("enable = numa\nenable = smt");
  run_pod("web", {{"topolet.io/cpu", kSecret},
                  {"topolet.io/numa-policy", "none"},
                  {"example.com/cpu", kSecret},
                  {"topolet.io/containers", R"({"mian": {"cpus": "shared"}, "side": {"smtt": "hunter2"}})"}});
  const std::string cpu = "unknown annotation topolet.io/cpu; did you mean topolet.io/cpus?";
  const std::string mian =
      "annotation topolet.io/containers names container 'mian', which the pod does not have so far; did you mean main?";
  const std::string smtt = "unknown annotation smtt in topolet.io/containers for container side; did you mean smt?";
  ASSERT_TRUE(create("main").ok());
  ASSERT_TRUE(create("side").ok());
  ASSERT_TRUE(create("main", false, 1).ok());
  EXPECT_THAT(explained("web/main"), AllOf(HasSubstr("; " + cpu), HasSubstr("; " + mian)));
  EXPECT_THAT(explained("web/side"), AllOf(HasSubstr("; " + cpu), HasSubstr("; " + smtt)));
  // After a restart it is the same pod. The log goes on in the same file.
  ASSERT_EQ(rig_.stop(), 0);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(create("main", false, 2).ok());
  const std::string log = log_at_end();
  for (const std::string& told : {cpu, mian, smtt}) {
    EXPECT_EQ(count_of(log, "pod default/web: " + told), 1U) << told << "\n" << log;
  }
  EXPECT_EQ(count_of(log, "warning pod default/web: "), 3U) << log;
  EXPECT_THAT(log, Not(HasSubstr(kSecret)));
}

TEST_F(AnnotationsTest, DenyNothingAndAreLoggedOnceWhereAContainerIsDenied) {
  start("enable = numa");
  run_pod("big", {{"topolet.io/isolatd", kSecret}});
  const std::string told = "unknown annotation topolet.io/isolatd; did you mean topolet.io/isolated?";
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = create("main", /*too_much=*/true);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("; " + told));
  }
  EXPECT_EQ(rig_.query("SELECT times FROM denials"), std::vector<std::string>{"3"});
  ASSERT_TRUE(create("small").ok());
  run_pod("bad", {{"topolet.io/isolatd", kSecret}, {"topolet.io/cpus", "exclusiv"}});
  EXPECT_THAT(create("main").error_message(), AllOf(HasSubstr("topolet.io/cpus = 'exclusiv'"), HasSubstr("; " + told)));
  const std::string log = log_at_end();
  EXPECT_EQ(count_of(log, "pod default/big: " + told), 1U) << log;
  EXPECT_EQ(count_of(log, "pod default/bad: " + told), 1U) << log;
}

TEST_F(AnnotationsTest, ThatNobodyReadsAreStoredWithoutTheirValues) {
  start("enable = numa");
  run_pod("web", {{"topolet.io/isolatd", kSecret},
                  {"topolet.io/numa-policy", "none"},
                  {"topolet.io/containers", R"({"main": {"team": "hunter2", "cpus": "shared"}})"}});
  ASSERT_TRUE(create("main").ok());
  const std::vector<std::string> none = {"0"};
  EXPECT_EQ(
      rig_.query("SELECT count(*) FROM allocation WHERE pod_annotations || annotations || settings LIKE '%hunter2%'"),
      none);
  EXPECT_EQ(rig_.query("SELECT count(*) FROM pod WHERE annotations LIKE '%hunter2%'"), none);
  EXPECT_EQ(rig_.query("SELECT count(*) FROM decided WHERE settings || reason LIKE '%hunter2%'"), none);
  EXPECT_EQ(rig_.query("SELECT settings FROM allocation"),
            std::vector<std::string>{R"({"cpus":"shared","numa-policy":"none"})"});
}

TEST_F(AnnotationsTest, ThatAreUnknownAreNotSaidToWaitForPermission) {
  start("enable = numa", "annotations = cpus");
  run_pod("web", {{"topolet.io/isolatd", "prefer"}, {"topolet.io/isolated", "prefer"}});
  ASSERT_TRUE(create("main").ok());
  EXPECT_THAT(explained("web/main"),
              AllOf(HasSubstr("unknown annotation topolet.io/isolatd; did you mean topolet.io/isolated?"),
                    HasSubstr("annotation topolet.io/isolated is ignored: placement.annotations does not list it"),
                    Not(HasSubstr("isolatd is ignored"))));
}

TEST_F(AnnotationsTest, OfPluginsAreKnownAsLongAsThosePluginsAreEnabled) {
  start("enable = annotated");
  run_pod("web", {{"topolet.io/tenant", "a"}, {"topolet.io/smt", "isolate"}});
  ASSERT_TRUE(create("main").ok());
  EXPECT_THAT(explained("web/main"),
              AllOf(Not(HasSubstr("tenant")),
                    HasSubstr("unknown annotation topolet.io/smt: neither topolet nor an enabled plugin reads it")));
  rig_.configure("enable = smt");
  ASSERT_TRUE(rig_.reload().ok());
  run_pod("after", {{"topolet.io/tenant", "a"}, {"topolet.io/smt", "isolate"}});
  ASSERT_TRUE(create("main").ok());
  EXPECT_THAT(explained("after/main"),
              HasSubstr("unknown annotation topolet.io/tenant: neither topolet nor an enabled plugin reads it"));
  rig_.configure("enable = smt\nenable = annotated\n[annotated]\nnames = unsaid");
  ASSERT_TRUE(rig_.reload().ok());
  run_pod("unsure", {{"topolet.io/tenant", "a"}});
  ASSERT_TRUE(create("main").ok());
  EXPECT_THAT(explained("unsure/main"), HasSubstr("(plugins that do not say what they read: annotated)"));
}

TEST_F(AnnotationsTest, ThatNobodyReadsStopAStartAReloadAndTheCheck) {
  const std::string told = "placement.annotations: unknown annotation tenat; did you mean tenant?";
  rig_.configure("enable = annotated", "annotations = cpus\nannotations = tenat");
  EXPECT_EQ(check_config().code, 1);
  EXPECT_THAT(check_config().text, HasSubstr("topolet.conf:12: " + told));
  EXPECT_FALSE(rig_.start());
  EXPECT_NE(rig_.wait_for_end(), 0);
  EXPECT_THAT(rig_.log(), HasSubstr("topolet.conf:12: " + told));

  start("enable = annotated", "annotations = cpus\nannotations = tenant");
  rig_.configure("enable = annotated\n[annotated]\nnames = none", "annotations = cpus\nannotations = tenant");
  const grpc::Status reloaded = rig_.reload();
  EXPECT_EQ(reloaded.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(reloaded.error_message(), HasSubstr("placement.annotations: unknown annotation tenant: neither topolet"));
  EXPECT_EQ(rig_.plugin("annotated").options(0).value(), "tenant") << "the old configuration stays";
}

TEST_F(AnnotationsTest, ThatMayBeReadAreOnlyWarnedOf) {
  rig_.configure("enable = annotated\n[annotated]\nnames = unsaid", "annotations = cups");
  const Said checked = check_config();
  EXPECT_EQ(checked.code, 0);
  const std::string told = "placement.annotations: unknown annotation cups; did you mean cpus?";
  EXPECT_THAT(checked.text, AllOf(HasSubstr("warning: "), HasSubstr(told)));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs(told));
  run_pod("web", {{"topolet.io/cups", "shared"}});
  ASSERT_TRUE(create("main").ok());
  EXPECT_THAT(explained("web/main"), Not(HasSubstr("unknown annotation"))) << "the operator permits it by name";
}

}  // namespace
}  // namespace topolet::testing
