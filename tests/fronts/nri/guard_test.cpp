#include "core/fronts/nri/guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/fronts/nri/nri.pb.h"
#include "tests/fronts/nri/fake_runtime.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::nri {
namespace {

using ::testing::HasSubstr;

lens::FieldOwner owner(std::int32_t field, const std::string& plugin) {
  lens::FieldOwner owner;
  owner.set_field(field);
  owner.set_plugin(plugin);
  return owner;
}

/// A create of the container c1 whose CPUs `plugin` sets; nobody if it is empty.
std::string validation(const std::string& plugin, const std::string& cpus) {
  lens::ValidateRequest request;
  request.mutable_pod()->set_id("s1");
  request.mutable_pod()->set_uid("u1");
  request.mutable_pod()->set_name("web-0");
  request.mutable_pod()->set_pod_namespace("shop");
  request.mutable_container()->set_id("c1");
  request.mutable_container()->set_sandbox_id("s1");
  request.mutable_container()->set_name("web");
  if (!plugin.empty()) {
    request.mutable_adjustment()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(cpus);
    auto& owners = *request.mutable_owners()->add_containers();
    owners.set_container_id("c1");
    *owners.mutable_fields()->add_simple() = owner(21, plugin);
  }
  return request.SerializeAsString();
}

lens::ValidateResponse answer_of(const Result<std::string>& answer) {
  lens::ValidateResponse response;
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  EXPECT_TRUE(response.ParseFromString(answer.value_or("\xff")));
  return response;
}

std::string configure_request(std::chrono::milliseconds patience = std::chrono::milliseconds(2000)) {
  lens::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version("v2.4.2");
  request.set_nri_version("v0.12.3");
  request.set_request_timeout_ms(patience.count());
  return request.SerializeAsString();
}

TEST(AsksValidators, IsTrueFromNriTenOn) {
  const auto asks = [](const char* name, const char* version, const char* nri) {
    return asks_validators({name, version, nri, {}});
  };
  EXPECT_TRUE(asks("containerd", "v2.4.2", "v0.12.3"));
  EXPECT_TRUE(asks("containerd", "v2.2.0", "0.10.0"));
  EXPECT_FALSE(asks("containerd", "v2.2.0", "v0.9.1"));
  // Where the runtime does not say which NRI it has, its own version tells.
  EXPECT_TRUE(asks("containerd", "v2.2.7", ""));
  EXPECT_FALSE(asks("containerd", "v2.1.4", ""));
  EXPECT_FALSE(asks("containerd", "1.7.27", ""));
  EXPECT_TRUE(asks("cri-o", "1.34.0", ""));
  EXPECT_FALSE(asks("cri-o", "1.33.5", ""));
  EXPECT_TRUE(asks("another", "0.1", ""));
  EXPECT_TRUE(asks("containerd", "unknown", ""));
}

class GuardTest : public ::testing::Test {
 protected:
  Validator::Judge refuse_all() {
    return [](const operations::ForeignCpuset& found, const operations::OnForeignCpusetJudged& verdict) {
      verdict("set by " + *found.cpus_plugin);
    };
  }

  TempDir directory_;
  FakeRuntime runtime_{directory_.path() / "nri.sock"};
  std::shared_ptr<Log> log_ = make_silent_log();
};

TEST(ReadForeignCpuset, SaysWhoSetsWhat) {
  const auto found = read_foreign_cpuset(validation("10-koordlet", "0-3"), "99-topolet-guard").value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, (operations::ForeignCpuset{.container_id = "c1",
                                               .sandbox_id = "s1",
                                               .pod_uid = "u1",
                                               .pod_namespace = "shop",
                                               .pod_name = "web-0",
                                               .container = "web",
                                               .cpus_plugin = "10-koordlet",
                                               .cpus = CpuSet::range(0, 3),
                                               .mems_plugin = std::nullopt,
                                               .mems = {}}));
}

TEST(ReadForeignCpuset, IsNothingWhereNobodyElseSetsOne) {
  EXPECT_FALSE(read_foreign_cpuset(validation("", ""), "99-topolet-guard").value().has_value());
  EXPECT_FALSE(read_foreign_cpuset(validation("99-topolet-guard", "0"), "99-topolet-guard").value().has_value());
  lens::ValidateRequest of_another;
  ASSERT_TRUE(of_another.ParseFromString(validation("10-koordlet", "0")));
  of_another.mutable_owners()->mutable_containers(0)->set_container_id("c2");
  EXPECT_FALSE(read_foreign_cpuset(of_another.SerializeAsString(), "99-topolet-guard").value().has_value());
}

TEST(ReadForeignCpuset, SaysWhatCannotBeRead) {
  EXPECT_EQ(read_foreign_cpuset("\xff", "").error().code, Code::kInvalidArgument);
}

TEST_F(GuardTest, RegistersAndOnlyValidates) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  lens::RegisterRequest registration;
  ASSERT_TRUE(registration.ParseFromString(runtime_.accept_plugin()));
  EXPECT_EQ(registration.plugin_name(), "topolet-guard");
  EXPECT_EQ(registration.plugin_index(), "99");
  lens::ConfigureResponse configured;
  ASSERT_TRUE(configured.ParseFromString(runtime_.call("Configure", configure_request()).value()));
  EXPECT_EQ(configured.events(), 1 << 13);
  EXPECT_TRUE(testing::eventually([&] { return guard.state().runtime.has_value(); }));
  EXPECT_EQ(*guard.state().runtime, (RuntimeFacts{"containerd", "v2.4.2", "v0.12.3", std::chrono::milliseconds(2000)}));
  EXPECT_EQ(runtime_.call("MethodOfALaterVersion", "x").value(), "");
}

TEST_F(GuardTest, TakesAllPartsOfTheSynchronisation) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin();
  lens::SynchronizeRequest part;
  part.add_pods()->set_id(std::string(1000000, 'x'));
  part.set_more(true);
  lens::SynchronizeResponse response;
  ASSERT_TRUE(response.ParseFromString(runtime_.call("Synchronize", part.SerializeAsString()).value()));
  EXPECT_TRUE(response.more());
  part.set_more(false);
  ASSERT_TRUE(response.ParseFromString(runtime_.call("Synchronize", part.SerializeAsString(), 100).value()));
  EXPECT_FALSE(response.more());
}

TEST_F(GuardTest, RefusesWhatItsJudgeRefusesAndLetsTheRestPass) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin();
  const auto refused = answer_of(runtime_.call("ValidateContainerAdjustment", validation("10-koordlet", "0")));
  EXPECT_TRUE(refused.reject());
  EXPECT_EQ(refused.reason(), "set by 10-koordlet");
  EXPECT_FALSE(answer_of(runtime_.call("ValidateContainerAdjustment", validation("", ""))).reject());
  EXPECT_FALSE(answer_of(runtime_.call("ValidateContainerAdjustment", "\xff")).reject());
}

TEST_F(GuardTest, AnswersInFramesThatTheRuntimeCanRead) {
  const std::string reason(20000, 'r');
  const Guard guard(
      directory_.path() / "nri.sock",
      [&](const operations::ForeignCpuset&, const operations::OnForeignCpusetJudged& verdict) { verdict(reason); },
      std::nullopt, *log_);
  runtime_.accept_plugin();
  const auto refused = answer_of(runtime_.call("ValidateContainerAdjustment", validation("10-koordlet", "0"), 1));
  EXPECT_EQ(refused.reason(), reason);
  EXPECT_EQ(runtime_.longest_frame(), 4096U);
}

TEST_F(GuardTest, TellsTheRuntimeWhatCannotBeSent) {
  const Guard guard(
      directory_.path() / "nri.sock",
      [](const operations::ForeignCpuset&, const operations::OnForeignCpusetJudged& verdict) {
        verdict(std::string(kMaxMessageBytes, 'r'));
      },
      std::nullopt, *log_);
  runtime_.accept_plugin();
  const auto answer = runtime_.call("ValidateContainerAdjustment", validation("10-koordlet", "0"));
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, HasSubstr("its NRI socket takes at most 1044470 bytes at once"));
}

TEST_F(GuardTest, GoesOnAsTheSamePluginWithTheConnectionOfAnotherProcess) {
  auto former = std::make_unique<Guard>(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin();
  ASSERT_TRUE(runtime_.call("Configure", configure_request()).has_value());
  std::optional<ReleasedSession> released = former->release(std::chrono::minutes(1));
  ASSERT_TRUE(released.has_value());
  EXPECT_EQ(released->plugin, "99-topolet-guard");
  former.reset();
  runtime_.send_call("ValidateContainerAdjustment", validation("10-koordlet", "0"));

  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_, std::move(released));
  EXPECT_TRUE(answer_of(runtime_.await_answer()).reject());
  EXPECT_EQ(guard.state().runtime->version, "v2.4.2");
}

TEST_F(GuardTest, DoesNotGoOnAsAnotherPlugin) {
  auto former = std::make_unique<Guard>(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin();
  ASSERT_TRUE(runtime_.call("Configure", configure_request()).has_value());
  std::optional<ReleasedSession> released = former->release(std::chrono::minutes(1));
  ASSERT_TRUE(released.has_value());
  former.reset();
  released->plugin = "50-topolet";

  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_, std::move(released));
  EXPECT_TRUE(runtime_.is_left_alone());
  lens::RegisterRequest registration;
  ASSERT_TRUE(registration.ParseFromString(runtime_.accept_plugin()));
  EXPECT_EQ(registration.plugin_name(), "topolet-guard");
}

TEST_F(GuardTest, ComesAgainWhenTheRuntimeWasRestarted) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  for (int round = 0; round < 3; ++round) {
    runtime_.accept_plugin();
    ASSERT_TRUE(runtime_.call("Configure", configure_request()).has_value());
    runtime_.restart();
    EXPECT_TRUE(testing::eventually([&] { return !guard.state().runtime.has_value(); }));
  }
}

TEST_F(GuardTest, SaysWhyItIsNotRegistered) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin(Error{Code::kPermissionDenied, "no plugins here"});
  EXPECT_TRUE(testing::eventually([&] { return !guard.state().why_not.empty(); }));
  EXPECT_EQ(guard.state().why_not, "the runtime does not register plugin '99-topolet-guard': no plugins here");
  EXPECT_TRUE(runtime_.is_left_alone());
}

TEST_F(GuardTest, SaysThatThereIsNoSocket) {
  const Guard guard(directory_.path() / "none.sock", refuse_all(), std::nullopt, *log_);
  EXPECT_TRUE(testing::eventually([&] { return !guard.state().why_not.empty(); }));
  EXPECT_THAT(guard.state().why_not, HasSubstr("none.sock' cannot be connected to: No such file"));
}

TEST_F(GuardTest, LeavesARuntimeThatSendsWhatNoRuntimeSends) {
  const Guard guard(directory_.path() / "nri.sock", refuse_all(), std::nullopt, *log_);
  runtime_.accept_plugin();
  std::string frames;
  append_frames(Channel::kPlugin, std::string("\xff\xff\xff\xff\0\0\0\1\1\0", 10), frames);
  runtime_.send_bytes(frames);
  EXPECT_TRUE(runtime_.is_left_alone());
  runtime_.accept_plugin();  // and comes again
}

TEST_F(GuardTest, AnswersBeforeTheRuntimeLosesItsPatience) {
  for (const std::optional<std::string>& when_late :
       {std::optional<std::string>(), std::optional<std::string>("late")}) {
    const Guard guard(
        directory_.path() / "nri.sock", [](auto...) {}, when_late, *log_);
    runtime_.accept_plugin();
    ASSERT_TRUE(runtime_.call("Configure", configure_request(std::chrono::milliseconds(20))).has_value());
    const auto answer = answer_of(runtime_.call("ValidateContainerAdjustment", validation("10-koordlet", "0")));
    EXPECT_EQ(answer.reject(), when_late.has_value());
    EXPECT_EQ(answer.reason(), when_late.value_or(""));
  }
}

TEST_F(GuardTest, MayBeAnsweredWhenTheGuardIsGone) {
  std::promise<operations::OnForeignCpusetJudged> asked;
  std::future<operations::OnForeignCpusetJudged> late = asked.get_future();
  {
    const Guard guard(
        directory_.path() / "nri.sock",
        [&](const operations::ForeignCpuset&, operations::OnForeignCpusetJudged verdict) {
          asked.set_value(std::move(verdict));
        },
        std::nullopt, *log_);
    runtime_.accept_plugin();
    runtime_.send_call("ValidateContainerAdjustment", validation("10-koordlet", "0"));
    late.wait();
  }
  late.get()("too late");
  EXPECT_FALSE(runtime_.await_answer().has_value());
}

}  // namespace
}  // namespace topolet::nri
