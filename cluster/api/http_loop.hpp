// One thread for HTTP requests, timers and what others want to have done on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/api/api_server.hpp"
#include "core/base/mutex.hpp"

namespace topolet::api {

struct HttpRequest {
  std::string method = "GET";
  std::string path;                  ///< with the query, "/api/v1/pods?limit=500"
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;
  std::chrono::milliseconds timeout{10'000};  ///< for all of it
};

struct HttpAnswer {
  int status = 0;     ///< 0: there is none, and `error` says why
  std::string error;  ///< one line
  std::string body;   ///< of a stream only where the status is not 200
  std::optional<std::chrono::seconds> retry_after;
  bool was_sent = true;  ///< false: the server cannot have got any of the request
};

/// Runs from start() to stop(); what has not ended by then is dropped without a word. Follows no redirects.
class HttpLoop {
 public:
  using Task = std::function<void()>;

  /// Throws std::runtime_error if libcurl cannot be had.
  HttpLoop();
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  void start();
  void stop();

  /// Any thread; also before start() and, without effect, after stop().
  void post(Task task) TOPOLET_EXCLUDES(mutex_);

  // On the loop's thread.

  /// The number is for cancel(), which does nothing once the task was run.
  std::uint64_t after(std::chrono::milliseconds delay, Task task);
  void cancel(std::uint64_t timer);

  using OnDone = std::function<void(HttpAnswer)>;
  using OnData = std::function<void(std::string_view)>;
  /// `on_data`, where it is given, gets the body piece by piece. Nothing is called before send() has returned, and
  /// nothing after abort(); the callbacks may call any of these functions.
  std::uint64_t send(const ApiServer& server, const HttpRequest& request, OnDone on_done, OnData on_data = {});
  void abort(std::uint64_t transfer);

 private:
  struct Transfer;
  using Clock = std::chrono::steady_clock;

  void run();
  std::vector<Task> take_tasks() TOPOLET_EXCLUDES(mutex_);
  void run_timers();
  void end_transfers();
  std::chrono::milliseconds until_next_timer() const;
  bool is_stopping() const TOPOLET_EXCLUDES(mutex_);

  void* const multi_;  ///< CURLM
  std::thread thread_;
  mutable Mutex mutex_;
  std::vector<Task> tasks_ TOPOLET_GUARDED_BY(mutex_);
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  // The thread's.
  std::uint64_t last_number_ = 0;
  std::map<std::pair<Clock::time_point, std::uint64_t>, Task> timers_;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace topolet::api
