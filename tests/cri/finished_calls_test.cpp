// Reports of each call when it is over.
#include <gmock/gmock.h>

#include <vector>

#include "tests/cri/proxy_rig.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {
namespace {

struct Told {
  std::string path;
  Code code;
  bool is_unary;
  bool was_at_runtime;
  bool took_longer_than_runtime;
};

class FinishedCalls : public ::testing::Test {
 protected:
  void start() {
    runtime_ = std::make_unique<RecordingRuntime>(directory_.file("runtime.sock"));
    rig_ = std::make_unique<ProxyRig>(
        directory_,
        cri::ProxyHooks{.intercepted = {"CreateContainer"},
                        .on_call =
                            [](std::shared_ptr<cri::Call> call) {
                              call->reject({Code::kResourceExhausted, "no"});
                            },
                        .observed = {},
                        .on_observed = {},
                        .on_finished =
                            [this](const cri::FinishedCall& call) {
                              MutexLock lock(mutex_);
                              const bool is_at_runtime = call.at_runtime.has_value();
                              told_.push_back({std::string(call.path), call.code, call.is_unary, is_at_runtime,
                                               is_at_runtime && call.total > *call.at_runtime});
                            },
                        .on_own_call = {},
                        .on_connected = {}});
  }
  /// The next that is told.
  Told next() {
    const bool is_told = eventually([this] {
      MutexLock lock(mutex_);
      return told_.size() > seen_;
    });
    EXPECT_TRUE(is_told) << "nothing was told";
    MutexLock lock(mutex_);
    return is_told ? told_[seen_++] : Told();
  }

  TempDir directory_;
  Mutex mutex_;
  std::vector<Told> told_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t seen_ = 0;
  std::unique_ptr<RecordingRuntime> runtime_;
  std::unique_ptr<ProxyRig> rig_;
};

TEST_F(FinishedCalls, AreToldWithTheTimeThatTheRuntimeTook) {
  start();
  ASSERT_TRUE(rig_->client.call({.path = kVersion, .message = "x"}).status.ok());
  const Told version = next();
  EXPECT_EQ(version.path, kVersion);
  EXPECT_EQ(version.code, Code::kOk);
  EXPECT_TRUE(version.is_unary);
  EXPECT_TRUE(version.took_longer_than_runtime);
}

TEST_F(FinishedCalls, AreToldAsTheirClientsSawThem) {
  start();
  EXPECT_FALSE(rig_->client.call({.path = kCreate, .message = "x"}).status.ok());
  const Told refused = next();
  EXPECT_EQ(refused.path, kCreate);
  EXPECT_EQ(refused.code, Code::kResourceExhausted);
  EXPECT_FALSE(refused.was_at_runtime);
  rig_->client.open({.path = kEvents, .message = ""})->cancel();
  const Told cancelled = next();
  EXPECT_EQ(cancelled.path, kEvents);
  EXPECT_EQ(cancelled.code, Code::kCancelled);
  EXPECT_FALSE(cancelled.is_unary);
}

TEST_F(FinishedCalls, AreToldThoughTheyWentNowhere) {
  start();
  rig_->proxy.drain();
  EXPECT_EQ(rig_->client.call({.path = kVersion, .message = "x"}).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  const Told refused = next();
  EXPECT_EQ(refused.path, kVersion);
  EXPECT_EQ(refused.code, Code::kUnavailable);
}

}  // namespace
}  // namespace topolet::testing
