// A gRPC client for tests that sends and receives bytes, whatever they mean.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace topolet::testing {

struct RawRequest {
  std::string path;
  std::string message;
  std::multimap<std::string, std::string> metadata = {};
  std::chrono::milliseconds timeout{60000};
};

struct RawResponse {
  grpc::Status status;
  std::vector<std::string> messages;
  std::multimap<std::string, std::string> header;
  std::multimap<std::string, std::string> trailer;
};

/// One call, step by step; every step blocks. For one thread, except cancel().
class RawCall {
 public:
  RawCall(grpc::GenericStub& stub, const RawRequest& request);
  ~RawCall();

  bool write(const std::string& message);
  void half_close();
  std::optional<std::string> read();
  /// Waits for the header alone; before the first read().
  std::multimap<std::string, std::string> read_header();
  void cancel() { context_.TryCancel(); }
  /// Reads what is left and the status.
  RawResponse finish();

 private:
  bool wait();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool finished_ = false;
};

class RawClient {
 public:
  /// `endpoint`: "unix:///path".
  explicit RawClient(const std::string& endpoint);

  /// Sends one message, half-closes, reads everything.
  RawResponse call(const RawRequest& request);
  /// Starts a call; `request.message` is not sent.
  std::unique_ptr<RawCall> open(const RawRequest& request);

 private:
  grpc::GenericStub stub_;
};

}  // namespace topolet::testing
