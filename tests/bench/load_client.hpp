// The client whose calls are measured.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "tests/support/byte_buffer.hpp"

namespace topolet::bench {

/// One request, again and again.
struct Load {
  std::string path;  ///< "/service/method"
  std::string request;
  std::size_t calls = 0;
  std::size_t concurrency = 1;
  bool is_echoed = false;  ///< the answer must be as long as the request
};

using testing::to_buffer;
using testing::to_bytes;

/// Calls of which each may depend on the answer to the one before.
class Script {
 public:
  struct Step {
    std::string path = {};
    grpc::ByteBuffer request = {};
    std::size_t kind = 0;          ///< which of the returned lists its time goes to
    std::size_t echoed_bytes = 0;  ///< how long the answer must be; 0: any length
  };

  virtual ~Script() = default;
  /// Fills in the next call; false at the end. `response` answers the one before, and is empty at first.
  virtual bool next(grpc::ByteBuffer& response, Step& step) = 0;
};

/// One connection, one thread (the caller's), any number of calls under way at a time.
class LoadClient {
 public:
  /// The deadline that the kubelet gives most of its calls.
  static constexpr std::chrono::seconds kDeadline{120};

  /// Connects to the socket. Throws if that fails. `deadline`: of each call.
  explicit LoadClient(const std::string& socket, std::chrono::seconds deadline = kDeadline);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  /// Starts a new call whenever one has ended. The microseconds that each took, in the order in which they ended.
  /// Throws if one fails.
  std::vector<double> run(const Load& load);

  /// Plays all scripts at once. The microseconds of the calls of each kind. Throws if a call fails.
  std::vector<std::vector<double>> run(const std::vector<std::unique_ptr<Script>>& scripts, std::size_t kinds);

  /// Makes one call. Returns the answer's bytes, or how it failed.
  Result<std::string> try_call(const std::string& path, const std::string& request);
  /// The same for a call that must not fail: throws if it does.
  std::string call(const std::string& path, const std::string& request);

  /// Opens streams and reads nothing of them, as long as the client lives.
  void open_unread_streams(const std::string& path, std::size_t count);

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace topolet::bench
