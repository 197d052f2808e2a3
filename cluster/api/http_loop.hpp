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
#include "core/base/clock.hpp"
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

/// Runs from start() to stop(); what has not ended by then is dropped without a word. Follows no redirects. Timers and
/// the time-outs of requests go by the clock that it is given; after that clock was set forward, a post() makes the
/// thread look at it. How long a connection may take to be made is measured by libcurl.
class HttpLoop {
 public:
  using Task = std::function<void()>;
  using Time = std::chrono::steady_clock::time_point;

  /// Throws std::runtime_error if libcurl cannot be had.
  explicit HttpLoop(Clock clock = {});
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  void start();
  void stop();

  /// Any thread; also before start() and, without effect, after stop().
  void post(Task task) TOPOLET_EXCLUDES(mutex_);
  Time now() const { return clock_.steady(); }
  /// Milliseconds since the Unix epoch; for what others read.
  std::chrono::milliseconds wall_time() const { return clock_.wall(); }

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

  void run();
  std::vector<Task> take_tasks() TOPOLET_EXCLUDES(mutex_);
  void run_timers();
  void end_transfers();
  void time_out(std::uint64_t number);
  void end_transfer(std::uint64_t number, int curl_code);
  std::unique_ptr<Transfer> take_transfer(std::uint64_t number);
  std::chrono::milliseconds until_next_timer() const;
  bool is_stopping() const TOPOLET_EXCLUDES(mutex_);

  const Clock clock_;
  void* const multi_;  ///< CURLM
  std::thread thread_;
  mutable Mutex mutex_;
  std::vector<Task> tasks_ TOPOLET_GUARDED_BY(mutex_);
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  // The thread's.
  std::uint64_t last_number_ = 0;
  std::map<std::pair<Time, std::uint64_t>, Task> timers_;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace topolet::api
