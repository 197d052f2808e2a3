// The path of a node's capacity, as others set it, from the NodeResourceTopology to topoletd.
#include "cluster/agent/kubernetes/capacity_relay.hpp"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/log.hpp"
#include "tests/cluster_api/loop_time.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Offered = std::pair<const std::uint32_t, OfferedCapacity>;

json zone_saying(const std::string& name, const std::string& milli, const std::string& until) {
  json attributes = json::array({{{"name", "topolet.io/cpus"}, {"value", "0-3"}}});
  if (!milli.empty()) attributes.push_back({{"name", "offline-capacity-milli"}, {"value", milli}});
  if (!until.empty()) attributes.push_back({{"name", "offline-capacity-until"}, {"value", until}});
  return {{"name", name}, {"type", "Node"}, {"attributes", attributes}};
}

TEST(OfferedCapacities, AreReadOfEachNode) {
  const json object = {{"zones",
                        {zone_saying("node-0", "3000", "1970-01-01T00:00:01Z"),
                         zone_saying("node-12", "-5", "1970-01-01T00:00:02Z"),
                         zone_saying("node-1", "", "1970-01-01T00:00:02Z"),
                         {{"name", "cache-1"}, {"type", "Cache"}}}}};
  const OfferedCapacities read = read_offered_capacities(object);
  EXPECT_THAT(read.by_node, ElementsAre(Offered(0, {3000, milliseconds(1000)}), Offered(12, {0, milliseconds(2000)})));
  EXPECT_EQ(read.unusable, "");
}

TEST(OfferedCapacities, CountWithANumberAndATimeOnly) {
  for (const auto& [milli, until] :
       std::vector<std::pair<std::string, std::string>>{{"3000", ""},
                                                        {"3000", "tomorrow"},
                                                        {"3k", "1970-01-01T00:00:01Z"},
                                                        {"3000 ", "1970-01-01T00:00:01Z"},
                                                        {"99999999999999999999", "1970-01-01T00:00:01Z"}}) {
    const OfferedCapacities read = read_offered_capacities({{"zones", {zone_saying("node-1", milli, until)}}});
    EXPECT_THAT(read.by_node, IsEmpty()) << milli << ' ' << until;
    EXPECT_THAT(read.unusable, HasSubstr("zone node-1: offline-capacity-milli is '" + milli)) << until;
  }
  for (
      const char* strange :
      {"null", "[]", R"({"zones":{}})", R"({"zones":[1,{"name":"node-1","type":"Node"}]})",
       R"({"zones":[{"name":"node-x","type":"Node","attributes":[{"name":"offline-capacity-milli","value":"1"}]}]})"}) {
    const OfferedCapacities read = read_offered_capacities(json::parse(strange));
    EXPECT_THAT(read.by_node, IsEmpty()) << strange;
    EXPECT_EQ(read.unusable, "") << strange;
  }
}

/// A node of four CPUs, at a moment.
class CapacityRequest : public ::testing::Test {
 protected:
  CapacityRequest() {
    node_.set_os_index(3);
    node_.set_cpus("8-11");
  }
  static watch::v1::Capacity told(std::int64_t milli, milliseconds until, const std::string& source = "nrt") {
    watch::v1::Capacity told;
    told.set_node(3);
    told.set_effective_cpu_milli(milli);
    told.set_until_ms(until.count());
    told.set_source(source);
    return told;
  }
  std::optional<control::v1::SetCapacityRequest> request(const std::optional<watch::v1::Capacity>& told,
                                                         const std::optional<OfferedCapacity>& offered) const {
    return capacity_request(node_, told ? &*told : nullptr, offered ? &*offered : nullptr, kNow);
  }

  static constexpr milliseconds kNow{1'700'000'000'000};
  static constexpr milliseconds kSoon = kNow + milliseconds(60'000);
  watch::v1::Node node_;
};

TEST_F(CapacityRequest, TellsWhatIsOfferedAndNotKnown) {
  const auto first = request({}, OfferedCapacity{3000, kSoon});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->node(), 3U);
  EXPECT_EQ(first->milli(), 3000);
  EXPECT_EQ(first->until_ms(), kSoon.count());
  EXPECT_EQ(first->source(), "nrt");
  EXPECT_FALSE(request(told(3000, kSoon), OfferedCapacity{3000, kSoon}).has_value());
  EXPECT_TRUE(request(told(3000, kSoon), OfferedCapacity{3001, kSoon}).has_value());
  EXPECT_TRUE(request(told(3000, kSoon), OfferedCapacity{3000, kSoon + milliseconds(1)}).has_value());
  EXPECT_TRUE(request(told(3000, kNow), OfferedCapacity{3000, kSoon}).has_value()) << "what was told has expired";
}

TEST_F(CapacityRequest, TellsNoMoreThanTheNodeHas) {
  EXPECT_EQ(request({}, OfferedCapacity{9000, kSoon})->milli(), 4000);
  EXPECT_FALSE(request(told(4000, kSoon), OfferedCapacity{9000, kSoon}).has_value());
  node_.set_memory_only(true);
  EXPECT_FALSE(request({}, OfferedCapacity{9000, kSoon}).has_value());
}

TEST_F(CapacityRequest, TakesBackWhatIsNotOfferedAnyMore) {
  for (const auto& gone : {std::optional<OfferedCapacity>(), std::optional(OfferedCapacity{3000, kNow})}) {
    const auto clear = request(told(3000, kSoon), gone);
    ASSERT_TRUE(clear.has_value());
    EXPECT_FALSE(clear->has_milli());
    EXPECT_FALSE(request(told(3000, kNow), gone).has_value()) << "it has expired, which topoletd knows";
    EXPECT_FALSE(request({}, gone).has_value());
  }
}

TEST_F(CapacityRequest, LeavesWhatSomebodyElseHasTold) {
  EXPECT_FALSE(request(told(1000, kSoon, "operator"), OfferedCapacity{3000, kSoon}).has_value());
  EXPECT_FALSE(request(told(1000, kSoon, "operator"), {}).has_value());
  EXPECT_TRUE(request(told(1000, kNow, "operator"), OfferedCapacity{3000, kSoon}).has_value()) << "it has expired";
}

TEST_F(CapacityRequest, TellsALongTimeInParts) {
  const OfferedCapacity for_ever{3000, kNow + hours(24 * 365)};
  const auto first = request({}, for_ever);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(milliseconds(first->until_ms()), kNow + hours(24 * 30));
  EXPECT_FALSE(request(told(3000, kNow + hours(24 * 16)), for_ever).has_value());
  EXPECT_TRUE(request(told(3000, kNow + hours(24 * 14)), for_ever).has_value());
}

/// topoletd's control socket, which keeps what it is told.
class ControlSocket final : public control::v1::Control::Service {
 public:
  explicit ControlSocket(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status SetCapacity(grpc::ServerContext*, const control::v1::SetCapacityRequest* request,
                           control::v1::SetCapacityResponse*) override {
    std::lock_guard lock(mutex_);
    ++requests_;
    watch::v1::Capacity told;
    told.set_node(request->node());
    told.set_effective_cpu_milli(request->milli());
    told.set_until_ms(request->until_ms());
    told.set_source(request->source());
    told_[request->node()] = told;
    return grpc::Status::OK;
  }
  std::map<std::uint32_t, watch::v1::Capacity> told() const {
    std::lock_guard lock(mutex_);
    return told_;
  }
  int requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, watch::v1::Capacity> told_;
  int requests_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class CapacityRelayTest : public ::testing::Test {
 protected:
  CapacityRelayTest() {
    relay_ = std::make_unique<CapacityRelay>(
        loop_, socket_,
        [this] {
          ++looks_;
          return node_state();
        },
        *log_);
    loop_.start();
  }
  ~CapacityRelayTest() override { loop_.stop(); }

  /// Two nodes of four CPUs, and what the control socket was told.
  std::optional<watch::v1::Snapshot> node_state() const {
    watch::v1::Snapshot state;
    for (const std::uint32_t node : {0U, 1U}) {
      watch::v1::Node& added = *state.mutable_machine()->add_nodes();
      added.set_os_index(node);
      added.set_cpus(node == 0 ? "0-3" : "4-7");
    }
    if (control_ != nullptr) {
      for (const auto& [node, told] : control_->told()) *state.add_capacities() = told;
    }
    return state;
  }
  void on_loop(const std::function<void()>& work) { topolet::testing::on_loop(loop_, work); }
  void advance(milliseconds time) { topolet::testing::advance(loop_, clock_, time); }
  void open_control_socket() {
    on_loop([this] { control_ = std::make_unique<ControlSocket>(socket_); });
  }
  void offer(const json& zones) {
    on_loop([&] { relay_->take_object({{"zones", zones}}); });
  }
  CapacityRelay::Counts counts() {
    CapacityRelay::Counts counts;
    on_loop([&] { counts = relay_->counts(); });
    return counts;
  }
  /// How often it has compared what is offered with what topoletd knows, without which it tells nothing.
  int looks() {
    int looks = 0;
    on_loop([&] { looks = looks_; });
    return looks;
  }
  /// Expects the next check after exactly this time, although topoletd changes a hundred times within it.
  void expect_next_look_after(milliseconds time, const char* why) {
    const int before = looks();
    for (int i = 0; i < 100; ++i) on_loop([this] { relay_->node_changed(); });
    advance(time - milliseconds(1));
    EXPECT_EQ(looks(), before) << why;
    advance(milliseconds(1));
    EXPECT_EQ(looks(), before + 1) << why;
  }
  bool has_answers(std::uint64_t handed_down, std::uint64_t failed) {
    return topolet::testing::eventually([&] {
      const CapacityRelay::Counts now = counts();
      return now.handed_down == handed_down && now.failed == failed;
    });
  }
  std::string log() {
    std::string text;
    on_loop([&] { text = text_.str(); });
    return text;
  }

  const TempDir directory_;
  const std::string socket_ = directory_.file("control.sock");
  topolet::testing::ManualClock clock_;
  std::unique_ptr<ControlSocket> control_;
  int looks_ = 0;
  std::ostringstream text_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
  api::HttpLoop loop_{clock_.clock()};
  std::unique_ptr<CapacityRelay> relay_;
};

constexpr const char* kFarAway = "1971-01-01T00:00:00Z";

TEST_F(CapacityRelayTest, HandsDownOneAfterTheOtherAndEachOnce) {
  open_control_socket();
  offer(json::array({zone_saying("node-0", "1000", kFarAway), zone_saying("node-1", "9000", kFarAway)}));
  ASSERT_TRUE(has_answers(1, 0));
  expect_next_look_after(milliseconds(1000), "a second after the first request");
  ASSERT_TRUE(has_answers(2, 0));
  EXPECT_EQ(control_->told().at(0).effective_cpu_milli(), 1000);
  EXPECT_EQ(control_->told().at(1).effective_cpu_milli(), 4000);
  expect_next_look_after(milliseconds(1000), "a second after the second request");
  const int before = looks();
  advance(milliseconds(59'999));
  EXPECT_EQ(looks(), before) << "it has told all";
  advance(milliseconds(1));
  EXPECT_EQ(looks(), before + 1) << "something may have ended";
  EXPECT_EQ(control_->requests(), 2);
  EXPECT_TRUE(has_answers(2, 0));
}

TEST_F(CapacityRelayTest, TellsALongTimeAgainBeforeItEnds) {
  open_control_socket();
  offer(json::array({zone_saying("node-0", "1000", kFarAway)}));
  ASSERT_TRUE(has_answers(1, 0));
  EXPECT_EQ(milliseconds(control_->told().at(0).until_ms()), clock_.clock().wall() + hours(24 * 30));
  advance(hours(24 * 14));
  advance(hours(24) + std::chrono::minutes(1));
  ASSERT_TRUE(has_answers(2, 0));
  EXPECT_EQ(milliseconds(control_->told().at(0).until_ms()), clock_.clock().wall() + hours(24 * 30));
}

TEST_F(CapacityRelayTest, SaysOnceThatItCannotAndTriesAgainLaterEachTime) {
  offer(json::array({zone_saying("node-0", "1000", kFarAway)}));
  std::uint64_t failed = 1;
  for (const int pause_s : {1, 2, 4, 5, 5, 5, 5, 5}) {
    ASSERT_TRUE(has_answers(0, failed++));
    expect_next_look_after(std::chrono::seconds(pause_s), "after a failure");
  }
  ASSERT_TRUE(has_answers(0, failed));
  open_control_socket();
  ASSERT_TRUE(topolet::testing::eventually([this] {
    advance(std::chrono::minutes(1));
    return counts().handed_down == 1;
  }));
  const std::string text = log();
  const std::string trouble = "cannot be told to topoletd (" + socket_ + ")";
  const auto first = text.find(trouble + ": ");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(trouble + ": ", first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("this is over"), std::string::npos) << text;
}

TEST_F(CapacityRelayTest, SaysWhatItDoesNotUnderstand) {
  offer(json::array({zone_saying("node-0", "1000", "")}));
  offer(json::array({zone_saying("node-0", "1000", "")}));
  EXPECT_THAT(log(), HasSubstr("is not used: zone node-0"));
  EXPECT_EQ(counts().handed_down + counts().failed, 0U);
}

}  // namespace
}  // namespace topolet::agent
