// Requests to a Kubernetes API server, however they are carried there.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.hpp"

namespace topolet::api {

struct ApiRequest {
  std::string verb;  ///< for metrics: get, list, watch, create, update, patch
  std::string method = "GET";
  std::string path;          ///< with the query
  nlohmann::json body = {};  ///< null: none
  std::string content_type = "application/json";
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{10'000};
  /// Asked right before it is sent, which may be later than it was asked for: false, and it is not sent.
  std::function<bool()> is_still_wanted = {};
  /// True: the request is held back while the server has asked to wait (Retry-After).
  bool waits_when_asked_to = true;
};

struct ApiAnswer {
  int status = 0;       ///< of HTTP; 0: no answer came
  nlohmann::json body;  ///< null where the status is not 2xx
  std::string error;    ///< one line, with what to do where that is known; empty where the status is 2xx
  /// The time that the server asks to wait before the next request.
  std::optional<std::chrono::seconds> retry_after;
  bool was_sent = true;  ///< false: the server cannot have got any of the request

  bool ok() const { return status >= 200 && status < 300; }
};

/// Requests, timers and the time, all on one thread, so that what waits for answers can be tried without a network.
class Api {
 public:
  using Clock = std::chrono::steady_clock;
  using OnAnswer = std::function<void(ApiAnswer)>;

  virtual ~Api() = default;
  /// `on_answer` may be called before it returns.
  virtual void request(ApiRequest request, OnAnswer on_answer) = 0;
  virtual void after(std::chrono::milliseconds delay, std::function<void()> task) = 0;
  virtual Clock::time_point now() const = 0;
  /// Milliseconds since the Unix epoch; for what others read.
  virtual std::chrono::milliseconds wall_time() const { return topolet::Clock().wall(); }
};

/// "a=b,c" as it stands in a query.
std::string query_escaped(std::string_view text);

}  // namespace topolet::api
