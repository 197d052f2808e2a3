// Streams that topoletd itself answers with, on a socket of its own.
#include <gmock/gmock.h>

#include <vector>

#include "tests/cri/proxy_rig.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMebibyte = 1 << 20;

class OwnStream : public ::testing::Test {
 protected:
  OwnStream()
      : runtime_(directory_.file("runtime.sock")),
        rig_(directory_, {.intercepted = {},
                          .on_call = {},
                          .observed = {},
                          .on_observed = {},
                          .on_own_call =
                              [this](std::shared_ptr<cri::OwnCall> call) {
                                MutexLock lock(mutex_);
                                call_ = std::move(call);
                                came_.notify_all();
                              },
                          .on_connected = {}}) {
    listener_ = *cri::Listener::open({.path = socket(), .max_memory_bytes = 0}, *log_);
    listener_->start(
        [this](UniqueFd connection) { return rig_.proxy.accept_own(std::move(connection), cri::OwnSocket::kWatch); });
    auto channel = grpc::CreateChannel("unix://" + socket(), grpc::InsecureChannelCredentials());
    stub_ = std::make_unique<grpc::GenericStub>(channel);
    stream_ = stub_->PrepareCall(&context_, "/x.Y/Z", &queue_);
    stream_->StartCall(nullptr);
    EXPECT_TRUE(next());
    const grpc::Slice request("asked");
    stream_->Write(grpc::ByteBuffer(&request, 1), nullptr);
    EXPECT_TRUE(next());
    MutexLock lock(mutex_);
    while (call_ == nullptr) came_.wait(mutex_);
  }
  ~OwnStream() override {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
    listener_->stop();
  }

  std::string socket() const { return directory_.file("own.sock"); }
  /// Waits for the operation that was started last.
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  /// The size of the next message, and its first byte; 0 at the end.
  std::pair<std::size_t, char> read() {
    grpc::ByteBuffer message;
    stream_->Read(&message, nullptr);
    if (!next()) return {0, '\0'};
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Dump(&slices).ok());
    return {message.Length(), static_cast<char>(*slices.front().begin())};
  }
  grpc::Status finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    next();
    return status;
  }
  void send(char letter, std::size_t size) { call_->send(std::make_shared<const std::string>(size, letter)); }

  TempDir directory_;
  std::shared_ptr<Log> log_ = make_silent_log();
  RecordingRuntime runtime_;
  Mutex mutex_;
  CondVar came_;
  std::shared_ptr<cri::OwnCall> call_;
  ProxyRig rig_;
  std::unique_ptr<cri::Listener> listener_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST_F(OwnStream, ArrivesInOrderAndWholeAndEndsWithItsStatus) {
  EXPECT_EQ(call_->socket(), cri::OwnSocket::kWatch);
  EXPECT_EQ(call_->path(), "/x.Y/Z");
  EXPECT_EQ(call_->request(), "asked");
  for (char letter = 'a'; letter <= 'z'; ++letter) send(letter, letter == 'm' ? 3 * kMebibyte : 1);
  call_->reject({Code::kUnavailable, "no more"});
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    EXPECT_EQ(read(), std::pair(letter == 'm' ? 3 * kMebibyte : std::size_t{1}, letter));
  }
  EXPECT_EQ(read().first, 0U);
  const grpc::Status status = finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "no more");
  EXPECT_TRUE(eventually([&] { return call_->has_ended(); }));
}

TEST_F(OwnStream, TellsHowMuchItsClientHasNotReadAndIsCutOff) {
  for (int i = 0; i < 20; ++i) send('x', kMebibyte);
  EXPECT_GT(call_->unsent_bytes(), 10 * kMebibyte);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(read().first, kMebibyte);
  EXPECT_TRUE(eventually([&] { return call_->unsent_bytes() <= 5 * kMebibyte; })) << call_->unsent_bytes();
  call_->cut_off();
  while (read().first != 0) continue;
  EXPECT_EQ(finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(eventually([&] { return call_->has_ended(); }));
  send('y', 1);
  EXPECT_LE(call_->unsent_bytes(), 5 * kMebibyte) << "what is sent after the end is dropped";
}

TEST_F(OwnStream, KnowsThatItsClientHasGone) {
  EXPECT_FALSE(call_->has_ended());
  context_.TryCancel();
  EXPECT_TRUE(eventually([&] { return call_->has_ended(); }));
}

}  // namespace
}  // namespace topolet::testing
