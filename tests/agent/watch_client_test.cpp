// How the agent follows a watch socket that comes and goes.
#include "cluster/agent/watch_client.hpp"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_clock.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

/// topoletd's watch socket: sends a snapshot to some of those who come, and ends the stream.
class WatchSocket final : public watch::v1::Watch::Service {
 public:
  /// `welcomes`: whether the first, the second, … gets a snapshot, and a change of that time; later ones get none.
  WatchSocket(const std::string& socket, std::vector<bool> welcomes, milliseconds changed = {})
      : welcomes_(std::move(welcomes)), changed_(changed) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Watch(grpc::ServerContext*, const watch::v1::WatchRequest* request,
                     grpc::ServerWriter<watch::v1::WatchResponse>* stream) override {
    std::lock_guard lock(mutex_);
    const std::size_t number = came_++;
    if (number < welcomes_.size() && welcomes_[number]) {
      watch::v1::WatchResponse response;
      response.mutable_snapshot()->set_instance("i");
      stream->Write(response);
      response.Clear();
      response.mutable_deltas()->add_deltas()->set_time_ms(changed_.count());
      stream->Write(response);
      if (!request->load()) return {grpc::StatusCode::UNAVAILABLE, "not now"};
      response.mutable_load()->add_cpus()->set_cpu(3);
      stream->Write(response);
    }
    return {grpc::StatusCode::UNAVAILABLE, "not now"};
  }

 private:
  std::mutex mutex_;
  const std::vector<bool> welcomes_;
  const milliseconds changed_;
  std::size_t came_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class WatchClientTest : public ::testing::Test {
 protected:
  /// Its pauses, as many as there are.
  std::vector<milliseconds> pauses_of(std::size_t count) {
    std::vector<milliseconds> pauses;
    std::promise<void> all;
    WatchClient::Options options{.socket = socket_, .longest_pause = milliseconds(1000), .clock = clock_.clock()};
    options.pause = [&](milliseconds duration) {
      if (pauses.size() == count) return;
      pauses.push_back(duration);
      if (pauses.size() == count) all.set_value();
    };
    WatchClient client(options, node_, *log_);
    client.start();
    EXPECT_EQ(all.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    client.stop();
    counts_ = client.counts();
    return pauses;
  }

  const TempDir directory_;
  const std::string socket_ = directory_.file("watch.sock");
  topolet::testing::ManualClock clock_;
  std::shared_ptr<Log> log_ = make_silent_log();
  Node node_;
  WatchCounts counts_;
};

TEST_F(WatchClientTest, WaitsLongerEachTimeUntilItIsToldSomething) {
  const WatchSocket socket(socket_, {false, false, false, false, true, true, false});
  EXPECT_THAT(pauses_of(8), ElementsAre(milliseconds(200), milliseconds(400), milliseconds(800), milliseconds(1000),
                                        milliseconds(100), milliseconds(100), milliseconds(200), milliseconds(400)));
  EXPECT_EQ(counts_.lost_connections, 2U);
}

TEST_F(WatchClientTest, TellsHowLongAChangeTookToComeByItsOwnClock) {
  const WatchSocket socket(socket_, {true}, clock_.clock().wall());
  clock_.advance(milliseconds(7));
  pauses_of(1);
  EXPECT_EQ(counts_.last_lag, milliseconds(7));
  EXPECT_FALSE(node_.summary().connected);
}

TEST_F(WatchClientTest, HasCountedASnapshotBeforeAnybodyIsToldOfIt) {
  const WatchSocket socket(socket_, {true});
  WatchClient client({.socket = socket_, .clock = clock_.clock()}, node_, *log_);
  std::vector<std::uint64_t> snapshots;
  std::promise<void> told;
  node_.follow([&](const auto& update) {
    if (update->event != "state") return;
    snapshots.push_back(client.counts().snapshots);
    told.set_value();
  });
  client.start();
  EXPECT_EQ(told.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  client.stop();
  EXPECT_THAT(snapshots, ElementsAre(1U));
}

TEST_F(WatchClientTest, AsksForLoadIfItIsToldTo) {
  for (const bool asks : {false, true}) {
    const WatchSocket socket(socket_, {true});
    Node node;
    std::vector<std::string> loads;
    std::promise<void> ended;
    node.follow([&](const auto& update) {
      if (update->event == "load") loads.push_back(update->data);
    });
    WatchClient::Options options{.socket = socket_, .load = asks, .clock = clock_.clock()};
    options.pause = [&, has_ended = false](milliseconds) mutable {
      if (!std::exchange(has_ended, true)) ended.set_value();
    };
    WatchClient client(options, node, *log_);
    client.start();
    EXPECT_EQ(ended.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    client.stop();
    ASSERT_EQ(loads.size(), asks ? 2U : 0U) << "what was measured, and that nothing is any more";
    if (asks) {
      EXPECT_EQ(loads.front(), R"({"cpus":{"3":{}},"is_settled":false,"nodes":{}})");
    }
  }
}

}  // namespace
}  // namespace topolet::agent
