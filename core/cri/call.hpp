// One CRI call as the rest of the core sees it: raw bytes, and the few things that can be done with it.
//
// The room core/cri, namespace topolet::cri: everything that speaks the CRI. This level holds what its sub-rooms share
// with the engine: Call, Runtime, and the names of the methods (methods.hpp). Below it, socket accepts connections,
// wire carries the bytes, and messages reads and patches them. It may include core/base and, for their plain values,
// workload.hpp and placement.hpp of core/placement.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::cri {

/// The runtime's answer to a unary call.
struct RuntimeResponse {
  Code code = Code::kOk;
  std::string message;
  std::string body;  ///< the serialized response; empty unless `code` is kOk
};

/// The bytes of a message in the pieces in which they came.
using MessagePieces = std::vector<std::string_view>;

/// An answer that a client got: to a unary call, or one message of a stream. Nothing of it is copied: it is there as
/// long as the function that is shown it runs.
struct ObservedMessage {
  std::string_view path;  ///< as in Call::path()
  MessagePieces response;
};

/// A call that is over, for whoever counts.
struct FinishedCall {
  std::string_view path;  ///< as in Call::path(); there as long as the function that is shown it runs
  Code code = Code::kOk;  ///< as the client saw it; kCancelled if it went before its answer
  bool is_unary = true;
  std::chrono::nanoseconds total{};                    ///< since it came; of unary ones only
  std::optional<std::chrono::nanoseconds> at_runtime;  ///< of these; none if the runtime did not answer
};

/// An intercepted unary call, held until somebody says how it goes on. Any thread may call any function.
/// The order is: forward() once and, after its answer, finish() once; or reject() once, at any time before finish().
/// A call that is dropped without either is answered UNAVAILABLE.
class Call {
 public:
  Call() : arrived_(std::chrono::steady_clock::now()) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  /// "/runtime.v1.RuntimeService/CreateContainer"
  virtual const std::string& path() const = 0;
  /// "CreateContainer"
  virtual std::string_view method() const = 0;
  /// The request's bytes as they came.
  virtual const std::string& request() const = 0;
  /// True once the client has cancelled, gone away or run out of time.
  virtual bool cancelled() const = 0;

  /// Sends the original bytes followed by `patch` (the untouched original buffer if `patch` is empty) to the runtime.
  /// `on_response` runs on the I/O thread and must not block. It always runs, once; a runtime that cannot be reached is
  /// UNAVAILABLE, a client that went away meanwhile CANCELLED.
  virtual void forward(std::string patch, std::function<void(const RuntimeResponse&)> on_response) = 0;
  /// Sends the runtime's answer to the client exactly as it came, metadata, status details and trailers included.
  virtual void finish() = 0;
  /// Answers the client with an error of our own.
  virtual void reject(const Error& error) = 0;

 private:
  const std::chrono::steady_clock::time_point arrived_;
};

/// The sockets of topoletd on which it is asked itself.
enum class OwnSocket : std::uint8_t { kControl, kWatch };

/// A call for topoletd itself, which no runtime hears of. Any thread may call any function. It is answered once, or
/// with a stream: send() for each message, then reject() with why it ends. A call that is dropped without an answer is
/// answered UNAVAILABLE.
class OwnCall {
 public:
  virtual ~OwnCall() = default;

  /// On which it came.
  virtual OwnSocket socket() const = 0;
  /// "/topolet.control.v1.Control/Status"
  virtual const std::string& path() const = 0;
  virtual const std::string& request() const = 0;
  virtual void answer(const std::string& response) = 0;
  virtual void reject(const Error& error) = 0;

  /// Sends one more message of a stream, when those before it are on their way. Not copied.
  virtual void send(std::shared_ptr<const std::string> message) = 0;
  /// How many bytes were given to send() and wait for the client to read what was before them.
  virtual std::size_t unsent_bytes() const = 0;
  /// Ends a stream whose client does not read, and that cannot be told why: it sees CANCELLED.
  virtual void cut_off() = 0;
  /// It was answered to the end, or the client has gone: whatever is sent leads nowhere.
  virtual bool has_ended() const = 0;
};

/// Unary calls of our own to the runtime, on the channel that the proxy uses.
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// `path` as in Call::path(). `done` runs on the I/O thread, once, and must not block. Any thread may call.
  virtual void call(std::string path, std::string request, std::chrono::milliseconds timeout,
                    std::function<void(const RuntimeResponse&)> done) = 0;
};

}  // namespace topolet::cri
