// Updates of containers: the kubelet's, and topolet's own, which come back as events.
#include "tests/fronts/nri/front_fixture.hpp"

namespace topolet::nri {
namespace {

using ::testing::HasSubstr;

/// As a runtime tells what it was asked for: what is to stay is zero. `shares`: of CPU time.
std::string update_request(const std::string& container_id, std::uint64_t shares = 0) {
  lens::UpdateRequest request;
  *request.mutable_container() = event_of(container_id).container();
  request.mutable_resources()->mutable_cpu()->mutable_shares()->set_value(shares);
  request.mutable_resources()->mutable_memory()->mutable_limit_bytes()->set_value(0);
  return request.SerializeAsString();
}

TEST_F(NriFrontTest, RepeatsAllThatAnUpdateAsksFor) {
  connect();
  lens::UpdateRequest request;
  *request.mutable_container() = event_of("c1").container();
  lens::Cpu& cpu = *request.mutable_resources()->mutable_cpu();
  cpu.mutable_shares()->set_value(0);
  cpu.mutable_quota_us()->set_value(300000);
  // A field that is not read here.
  std::string resources = request.resources().SerializeAsString() + "\x32\x02hi";
  std::string payload;
  request.clear_resources();
  payload = request.SerializeAsString();
  payload += "\x1a" + std::string(1, static_cast<char>(resources.size())) + resources;
  runtime_.send_call("UpdateContainer", payload);
  const auto update = engine_.updates.take();
  EXPECT_EQ(update->update().container_id, "c1");
  EXPECT_EQ(update->update().cpu_quota_us, 300000);
  EXPECT_EQ(update->update().cpu_shares, 0);
  std::promise<Outcome> outcome;
  update->admit({{4, 5, 6}, {1}}, [&outcome](const Outcome& told) { outcome.set_value(told); });
  const Result<std::string> answer = runtime_.await_answer();
  ASSERT_TRUE(answer);
  lens::UpdateResponse response;
  ASSERT_TRUE(response.ParseFromString(*answer));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).container_id(), "c1");
  const lens::Resources& told = response.updates(0).linux().resources();
  EXPECT_EQ(told.cpu().cpus(), "4-6");
  EXPECT_EQ(told.cpu().mems(), "1");
  EXPECT_TRUE(told.cpu().has_shares());
  EXPECT_EQ(told.cpu().quota_us().value(), 300000);
  EXPECT_THAT(told.SerializeAsString(), HasSubstr("\x32\x02hi"));
  EXPECT_TRUE(tell("PostUpdateContainer", "c1"));
  std::future<Outcome> future = outcome.get_future();
  EXPECT_EQ(wait_for(future).kind, Outcome::Kind::kDone);
}

lens::UpdateResponse update_answer(const Result<std::string>& answer) {
  lens::UpdateResponse response;
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  EXPECT_TRUE(response.ParseFromString(answer.value_or("\xff")));
  return response;
}

/// What waits in the runtime names no CPUs: it brings nobody anywhere if topoletd is gone by then.
TEST_F(NriFrontTest, TellsTheCpusOfItsOwnUpdatesWhenTheyComeBack) {
  connect();
  Status over = Error{Code::kUnknown, "not over"};
  own_updates_.update("c1", {{0, 1, 2, 3}, {1}}, [&over](const Status& told) { over = told; });
  EXPECT_EQ(updates_.sent, operations::ContainerCpuset());
  engine_.now = {{0, 1, 2, 3}, {1}};
  const lens::UpdateResponse response = update_answer(runtime_.call("UpdateContainer", update_request("c1")));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).container_id(), "c1");
  EXPECT_EQ(response.updates(0).linux().resources().cpu().cpus(), "0-3");
  EXPECT_EQ(response.updates(0).linux().resources().cpu().mems(), "1");
  EXPECT_EQ(engine_.notes.take(), "own c1");
  EXPECT_TRUE(engine_.updates.is_empty());
  updates_.under_way({});
  EXPECT_TRUE(over);
}

TEST_F(NriFrontTest, TakesFromItsOwnUpdateWhatTheContainerIsNotToHaveByNow) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  engine_.now = {{0, 1}, {}};
  const lens::UpdateResponse response = update_answer(runtime_.call("UpdateContainer", update_request("c1")));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).linux().resources().cpu().cpus(), "0-1");

  // The same once more is not its own: it has come back already.
  runtime_.send_call("UpdateContainer", update_request("c1"));
  engine_.updates.take()->pass();
  EXPECT_TRUE(runtime_.await_answer());
  updates_.under_way({});
}

TEST_F(NriFrontTest, LeavesAContainerWhereItIsThatIsToHaveOtherCpusByNow) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  EXPECT_EQ(update_answer(runtime_.call("UpdateContainer", update_request("c1"))).updates_size(), 0);
  updates_.under_way({});
}

TEST_F(NriFrontTest, TakesNoUpdateOfAKubeletForItsOwn) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  runtime_.send_call("UpdateContainer", update_request("c1", 2048));
  const auto update = engine_.updates.take();
  EXPECT_EQ(update->update().cpu_shares, 2048);
  update->pass();
  EXPECT_TRUE(runtime_.await_answer());
  updates_.under_way({});
}

TEST_F(NriFrontTest, SendsUpdatesWholeWhileTheRuntimeDoesNotAsk) {
  own_updates_.update("c1", {{0, 1}, {}}, [](const Status&) {});
  EXPECT_EQ(updates_.sent.cpus, (CpuSet{0, 1}));
  updates_.under_way({});
}

TEST_F(NriFrontTest, ReportsAnUpdateThatTheRuntimeHasNotAskedAbout) {
  connect();
  Status over;
  own_updates_.update("c1", {{0, 1}, {}}, [&over](const Status& told) { over = told; });
  updates_.under_way({});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kUnavailable);
}

/// The first one has failed in the runtime, which nothing tells.
TEST_F(NriFrontTest, EndsAnUpdateWhoseContainerIsUpdatedAgain) {
  connect();
  const auto admit = [this](std::promise<Outcome>& outcome) {
    runtime_.send_call("UpdateContainer", update_request("c1", 2048));
    const auto update = engine_.updates.take();
    update->admit({{4}, {}}, [&outcome](const Outcome& told) { outcome.set_value(told); });
    EXPECT_TRUE(runtime_.await_answer());
  };
  std::promise<Outcome> first;
  std::promise<Outcome> second;
  admit(first);
  std::future<Outcome> first_told = first.get_future();
  runtime_.send_call("UpdateContainer", update_request("c1", 1024));
  EXPECT_EQ(wait_for(first_told).kind, Outcome::Kind::kUnknown);
  engine_.updates.take()->admit({{4}, {}}, [&second](const Outcome& told) { second.set_value(told); });
  EXPECT_TRUE(runtime_.await_answer());
  EXPECT_TRUE(tell("PostUpdateContainer", "c1"));
  std::future<Outcome> second_told = second.get_future();
  EXPECT_EQ(wait_for(second_told).kind, Outcome::Kind::kDone);
}

}  // namespace
}  // namespace topolet::nri
