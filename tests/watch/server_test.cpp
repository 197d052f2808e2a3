// Who asks what fits, and goes before the answer is there.
#include "core/watch/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/watch/messages.hpp"

namespace topolet::watch {
namespace {

using ::testing::HasSubstr;

/// A call of Fits, and what becomes of it.
class Asking final : public cri::OwnCall {
 public:
  cri::OwnSocket socket() const override { return cri::OwnSocket::kWatch; }
  const std::string& path() const override { return path_; }
  const std::string& request() const override { return request_; }
  void answer(const std::string&) override { ended_.set_value("answered"); }
  void reject(const Error& error) override { ended_.set_value(error.message); }
  void send(std::shared_ptr<const std::string>) override {}
  std::size_t unsent_bytes() const override { return 0; }
  void cut_off() override {}
  bool has_ended() const override { return gone_; }

  void go() { gone_ = true; }
  std::string end() { return ended_.get_future().get(); }

 private:
  const std::string path_ = "/topolet.watch.v1.Watch/Fits";
  const std::string request_;
  std::atomic<bool> gone_ = false;
  std::promise<std::string> ended_;
};

class WatchServerTest : public ::testing::Test {
 protected:
  WatchServerTest() {
    std::string path = (std::filesystem::temp_directory_path() / "topolet-watch-XXXXXX").string();
    dir_ = ::mkdtemp(path.data());
  }
  ~WatchServerTest() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<cri::OwnServer> open(decltype(WatchHandlers::fits) fits) {
    auto opened = open_server({.path = dir_ / "watch.sock", .group = {}}, {}, {.fits = std::move(fits), .metrics = {}},
                              feed_, *log_);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }

  std::filesystem::path dir_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  Feed feed_{{.version = "1"}};
};

TEST_F(WatchServerTest, NothingIsComputedForOneWhoHasGone) {
  std::promise<void> begun;
  const auto server = open([&, first = true](const auto&, auto&, const auto& is_wanted) mutable -> Status {
    if (!std::exchange(first, false)) return {};
    begun.set_value();
    while (is_wanted()) std::this_thread::yield();
    return nobody_waits();
  });
  const auto gone = std::make_shared<Asking>();
  const auto next = std::make_shared<Asking>();
  server->on_call(gone);
  begun.get_future().wait();
  server->on_call(next);
  gone->go();
  EXPECT_EQ(next->end(), "answered");
}

TEST_F(WatchServerTest, NothingIsComputedAtTheEnd) {
  std::promise<void> begun;
  const auto server = open([&](const auto&, auto&, const auto& is_wanted) -> Status {
    begun.set_value();
    while (is_wanted()) std::this_thread::yield();
    return nobody_waits();
  });
  server->on_call(std::make_shared<Asking>());
  begun.get_future().wait();
  server->stop();
}

TEST(FitsRequest, NamesSoManyContainersAtMost) {
  v1::FitsRequest request;
  for (int i = 0; i < kMaxPendingContainers; ++i) {
    v1::PendingContainer& container = *request.add_pending();
    container.set_pod_uid("pod");
    container.set_name("c" + std::to_string(i));
    container.set_qos("besteffort");
  }
  const auto most = pending_of(request);
  ASSERT_TRUE(most) << most.error().message;
  *request.add_pending() = request.pending(0);
  const auto more = pending_of(request);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kResourceExhausted);
  EXPECT_THAT(more.error().message, HasSubstr("1001 pending containers are too many"));
}

}  // namespace
}  // namespace topolet::watch
