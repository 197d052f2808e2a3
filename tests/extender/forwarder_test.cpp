// The fate of calls for a leader that stands still.
#include "cluster/extender/forwarder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <future>

#include "tests/cluster_api/certificates.hpp"
#include "tests/extender/support.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::extender {
namespace {

using ::testing::HasSubstr;

/// The kernel takes connections for it, and nobody answers.
class StandsStill {
 public:
  std::string address() const { return fmt::format("127.0.0.1:{}", acceptor_.local_endpoint().port()); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_{context_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
};

class ForwarderTest : public ::testing::Test {
 protected:
  ForwarderTest() {
    const testing::Certificate own = ca_.server_certificate();
    folder_.write("tls.crt", own.certificate_pem);
    folder_.write("tls.key", own.key_pem);
    folder_.write("ca.crt", ca_.pem());
    tls_ = *http::TlsFiles::load({folder_.file("tls.crt"), folder_.file("tls.key"), folder_.file("ca.crt")}, *log_);
    loop_.start();
  }
  ~ForwarderTest() override { loop_.stop(); }

  void make(Forwarder::Options options) { forwarder_ = std::make_unique<Forwarder>(loop_, *tls_, options, *log_); }
  /// Why there is no answer.
  std::future<std::string> send(const std::string& path, const std::string& identity = "one") {
    auto told = std::make_shared<std::promise<std::string>>();
    loop_.post([this, told, path, identity] {
      forwarder_->send(path, "{}", {identity, leader_.address()}, [told](const Result<std::string>& answer) {
        told->set_value(answer ? "it was answered" : answer.error().message);
      });
    });
    return told->get_future();
  }

  const TempDir folder_;
  const testing::Ca ca_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  StandsStill leader_;
  std::unique_ptr<http::TlsFiles> tls_;
  api::HttpLoop loop_;
  std::unique_ptr<Forwarder> forwarder_;
};

constexpr std::chrono::hours kEver{1};

TEST_F(ForwarderTest, NobodyWaitsForItLongerThanUntilAnotherOneLeads) {
  make({.answerable = kEver, .patience = kEver});
  auto filter = send("/filter");
  auto bind = send("/bind");
  loop_.post([this] { forwarder_->give_up(); });
  EXPECT_EQ(filter.get(), "another replica leads by now");
  EXPECT_EQ(bind.get(), "another replica leads by now");
}

TEST_F(ForwarderTest, WhatOthersCanAnswerWaitsLessLong) {
  make({.answerable = std::chrono::milliseconds(1), .patience = kEver, .avoid = std::chrono::milliseconds(0)});
  auto bind = send("/bind");
  EXPECT_THAT(send("/filter").get(), HasSubstr("the leader one cannot be reached"));
  EXPECT_THAT(send("/prioritize").get(), HasSubstr("the leader one cannot be reached"));
  EXPECT_EQ(bind.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  loop_.post([this] { forwarder_->give_up(); });
  bind.get();
}

TEST_F(ForwarderTest, ItIsNotAskedAgainForAWhile) {
  make({.answerable = std::chrono::milliseconds(1), .patience = kEver, .avoid = kEver});
  send("/filter").get();
  EXPECT_THAT(send("/bind").get(), HasSubstr("it did not answer a moment ago"));
  auto other = send("/bind", "two");
  EXPECT_EQ(other.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "another one leads";
  loop_.post([this] { forwarder_->give_up(); });
  EXPECT_EQ(other.get(), "another replica leads by now");
  auto again = send("/bind");
  loop_.post([this] { forwarder_->give_up(); });
  EXPECT_EQ(again.get(), "another replica leads by now");
}

}  // namespace
}  // namespace topolet::extender
