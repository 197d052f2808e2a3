#include "core/machine/cpu_manager_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_dir.hpp"

namespace topolet::machine {
namespace {

using engine::KubeletCpus;
using ::testing::IsEmpty;

std::string why_unreadable(const std::string& json) {
  const Result<KubeletCpus> cpus = parse_cpu_manager_state(json);
  return cpus ? "it is read" : cpus.error().message;
}

TEST(CpuManagerState, HasTheCpusOfContainers) {
  const auto cpus = parse_cpu_manager_state(
      R"({"policyName":"static","defaultCpuSet":"0,5-7","entries":{"uid-a":{"main":"1-2","side":"3"},)"
      R"("uid-b":{"main":"4","none":""}},"checksum":353318322})");
  ASSERT_TRUE(cpus.has_value()) << cpus.error().message;
  EXPECT_EQ(*cpus, (KubeletCpus{{{"uid-a", "main"}, {1, 2}}, {{"uid-a", "side"}, {3}}, {{"uid-b", "main"}, {4}}}));
}

TEST(CpuManagerState, HasNoneUnderAnotherPolicy) {
  for (const char* json :
       {R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})",
        R"({"policyName":"none","entries":{"uid-a":{"main":"1-2"}}})",
        R"({"policyName":"static","defaultCpuSet":"0-7"})", R"({"policyName":"static","entries":null})"}) {
    const auto cpus = parse_cpu_manager_state(json);
    ASSERT_TRUE(cpus.has_value()) << json << ": " << cpus.error().message;
    EXPECT_THAT(*cpus, IsEmpty()) << json;
  }
}

TEST(CpuManagerState, OfAnotherShapeIsNotRead) {
  EXPECT_EQ(why_unreadable(""), "it is not a JSON object");
  EXPECT_EQ(why_unreadable("[]"), "it is not a JSON object");
  EXPECT_EQ(why_unreadable(R"({"policyName":"static","entries":{)"), "it is not a JSON object") << "cut off";
  EXPECT_EQ(why_unreadable(R"({"entries":{}})"), "'policyName' is not the name of a policy");
  EXPECT_EQ(why_unreadable(R"({"policyName":"static","entries":[]})"), "'entries' is not an object");
  EXPECT_EQ(why_unreadable(R"({"policyName":"static","entries":{"0123abcd":"1-2"}})"),
            "entry '0123abcd' is not about the containers of a pod")
      << "kubelets before 1.18 knew container ids only";
  for (const char* list : {"1", R"("1-")", R"("70000")", R"("all")", "null"}) {
    EXPECT_EQ(why_unreadable(R"({"policyName":"static","entries":{"uid-a":{"ma\nin":)" + std::string(list) + "}}}"),
              "container 'ma?in' of pod 'uid-a' has no list of CPUs")
        << list;
  }
  EXPECT_EQ(why_unreadable(std::string(20000, '[')), "it is not a JSON object");
}

TEST(CpuManagerState, SaysWhetherThePolicyIsStatic) {
  const TempDir kubelet;
  const auto file = kubelet.path() / "cpu_manager_state";
  EXPECT_FALSE(is_cpu_manager_static(file)) << "there is none";
  for (const char* text : {"", "[]", "{}", R"({"policyName":1})", R"({"policyName":"none"})"}) {
    kubelet.write("cpu_manager_state", text);
    EXPECT_FALSE(is_cpu_manager_static(file)) << text;
  }
  kubelet.write("cpu_manager_state", R"({"policyName":"static"})");
  EXPECT_TRUE(is_cpu_manager_static(file));
}

TEST(CpuManagerState, IsReadFromItsFileOrIgnored) {
  const TempDir kubelet;
  const auto log = make_silent_log();
  const auto file = kubelet.path() / "cpu_manager_state";
  EXPECT_THAT(read_cpu_manager_state(file, *log), IsEmpty()) << "there is none";
  kubelet.write("cpu_manager_state", R"({"policyName":"static","entries":{"uid-a":{"main":"1-2"}}})");
  EXPECT_EQ(read_cpu_manager_state(file, *log), (KubeletCpus{{{"uid-a", "main"}, {1, 2}}}));
  kubelet.write("cpu_manager_state",
                R"({"policyName":"static","entries":{"uid-a":{"main":"1-2"},"uid-b":{"main":3}}})");
  EXPECT_THAT(read_cpu_manager_state(file, *log), IsEmpty()) << "none of a file that is partly wrong";
  EXPECT_THAT(read_cpu_manager_state(kubelet.path(), *log), IsEmpty()) << "no file";
}

}  // namespace
}  // namespace topolet::machine
