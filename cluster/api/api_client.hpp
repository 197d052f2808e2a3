// Requests to a Kubernetes API server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/api/api_server.hpp"
#include "cluster/api/http_loop.hpp"
#include "core/base/mutex.hpp"

namespace topolet::api {

struct ApiRequest {
  std::string verb;  ///< for metrics: get, list, watch, create, update, patch
  std::string method = "GET";
  std::string path;          ///< with the query
  nlohmann::json body = {};  ///< null: none
  std::string content_type = "application/json";
  std::chrono::milliseconds timeout{10'000};
};

struct ApiAnswer {
  int status = 0;       ///< of HTTP; 0: no answer came
  nlohmann::json body;  ///< null where the status is not 2xx
  std::string error;    ///< one line, with what to do where that is known; empty where the status is 2xx
  /// What the server asks to wait before the next request.
  std::optional<std::chrono::seconds> retry_after;

  bool ok() const { return status >= 200 && status < 300; }
};

/// Everything but counts() on the loop's thread. Adds the token, reads it again each minute, and once more where the
/// server does not know it (401). After an answer with Retry-After (429, 503) nothing is sent until that time is over:
/// what is asked meanwhile waits.
class ApiClient {
 public:
  /// `loop` must outlive it.
  ApiClient(HttpLoop& loop, ApiServer server) : loop_(loop), server_(std::move(server)) {}
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  using OnAnswer = std::function<void(ApiAnswer)>;
  void request(ApiRequest request, OnAnswer on_answer);
  /// Calls `on_line` with each line of a watch, without its end, until the watch ends. Its number is for abort().
  using OnLine = std::function<void(std::string_view)>;
  std::uint64_t watch(const std::string& path, std::chrono::seconds duration, OnLine on_line, OnAnswer on_end);
  void abort(std::uint64_t watch) { loop_.abort(watch); }

  HttpLoop& loop() { return loop_; }
  const std::string& url() const { return server_.url; }

  /// Answers by verb and status, "0" where none came. Any thread.
  using Counts = std::map<std::pair<std::string, int>, std::uint64_t>;
  Counts counts() const TOPOLET_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  void send(ApiRequest request, OnAnswer on_answer, bool is_retry);
  HttpRequest http_request(const ApiRequest& request);
  const std::string& token(bool read_again);
  ApiAnswer finish(const std::string& verb, HttpAnswer answer) TOPOLET_EXCLUDES(mutex_);

  HttpLoop& loop_;
  const ApiServer server_;
  std::string token_;
  Clock::time_point token_read_{};
  Clock::time_point paused_until_{};
  mutable Mutex mutex_;
  Counts counts_ TOPOLET_GUARDED_BY(mutex_);
};

/// "a=b,c" as it stands in a query.
std::string query_escaped(std::string_view text);

}  // namespace topolet::api
