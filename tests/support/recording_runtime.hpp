// A container runtime for tests: a real gRPC server on a real unix socket that knows no message, records what arrives
// and answers what it is told to.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/happens_before.hpp"
#include "core/base/mutex.hpp"

namespace topolet::testing {

using Metadata = std::multimap<std::string, std::string>;

struct RecordedCall {
  std::string path;
  Metadata metadata;
  std::chrono::system_clock::time_point deadline;
  std::vector<std::string> messages;  ///< as far as the handler has read
  bool ended = false;
  bool cancelled = false;  ///< known once it has ended, or was waited for
};

/// One call while its handler runs. For the handler's thread.
class ServerCall {
 public:
  const std::string& path() const { return context_.method(); }
  /// The next message; nothing once the client has half-closed or is gone.
  std::optional<std::string> read();
  /// False if the client is gone.
  bool write(const std::string& message);
  /// Before the first write.
  void add_header(const std::string& key, const std::string& value) { context_.AddInitialMetadata(key, value); }
  /// Sends the header now, not with the first message.
  void send_header();
  void add_trailer(const std::string& key, const std::string& value) { context_.AddTrailingMetadata(key, value); }
  /// Blocks until the client has cancelled or is gone, or the runtime stops.
  void wait_for_cancellation();

 private:
  friend class RecordingRuntime;

  explicit ServerCall(class RecordingRuntime& runtime) : runtime_(runtime) {}
  bool wait_for(void* tag);
  void note_end();
  void finish(const grpc::Status& status);

  RecordingRuntime& runtime_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::CompletionQueue queue_;
  RecordedCall* record_ = nullptr;  // guarded by the runtime's mutex
  bool ended_ = false;
};

/// Runs each call's handler on a thread of its own. Any thread may call any function.
class RecordingRuntime {
 public:
  using Handler = std::function<grpc::Status(ServerCall&)>;

  /// Listens on `socket_path`; the destructor cancels what is left and removes it.
  explicit RecordingRuntime(const std::string& socket_path);
  ~RecordingRuntime();
  RecordingRuntime(const RecordingRuntime&) = delete;
  RecordingRuntime& operator=(const RecordingRuntime&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  /// How calls of `method` ("CreateContainer") are answered from now on. Methods without a handler read one message
  /// and answer an empty one.
  void handle(const std::string& method, Handler handler);
  /// How those without a handler of their own are answered.
  void handle_others(Handler handler);

  /// A handler that reads one message and answers `response`.
  static Handler answer(std::string response);
  /// A handler that reads one message and fails.
  static Handler refuse(grpc::Status status);

  /// Returns the calls that arrived so far, oldest first; `method` empty: of all methods.
  std::vector<RecordedCall> calls(const std::string& method = "") const;
  /// Blocks until `count` calls of `method` have arrived, or have ended, and returns them; empty after 20 s.
  std::vector<RecordedCall> wait_for_arrivals(const std::string& method, std::size_t count) const;
  std::vector<RecordedCall> wait_for_ends(const std::string& method, std::size_t count) const;

 private:
  friend class ServerCall;

  std::vector<RecordedCall> wait_for_count(const std::string& method, std::size_t count, bool ended) const;
  void accept_calls();
  bool request_call(ServerCall& exchange);
  void serve(ServerCall& exchange);
  Handler handler_of(const std::string& path) const;
  std::vector<RecordedCall> select(const std::string& method) const TOPOLET_REQUIRES(mutex_);
  void record(const std::function<void()>& change);

  const std::string endpoint_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread acceptor_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::list<RecordedCall> records_ TOPOLET_GUARDED_BY(mutex_);
  std::map<std::string, Handler> handlers_ TOPOLET_GUARDED_BY(mutex_);
  Handler other_ TOPOLET_GUARDED_BY(mutex_) = answer("");
};

}  // namespace topolet::testing
