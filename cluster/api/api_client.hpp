// Requests to a Kubernetes API server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/api/api.hpp"
#include "cluster/api/api_server.hpp"
#include "cluster/api/http_loop.hpp"
#include "cluster/api/refusal.hpp"
#include "core/base/mutex.hpp"

namespace topolet::api {

/// Everything but counts() on the loop's thread. Adds the token, reads it again each minute, and once more where the
/// server does not know it (401). After an answer with Retry-After (429, 503) nothing is sent until that time is over:
/// what is asked meanwhile waits.
class ApiClient final : public Api {
 public:
  /// `loop` must outlive it. `grants`: for what is said of a 403.
  ApiClient(HttpLoop& loop, ApiServer server, Grants grants = {})
      : loop_(loop), server_(std::move(server)), grants_(std::move(grants)) {}
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  void request(ApiRequest request, OnAnswer on_answer) override;
  void after(std::chrono::milliseconds delay, std::function<void()> task) override {
    loop_.after(delay, std::move(task));
  }
  Clock::time_point now() const override { return loop_.now(); }
  std::chrono::milliseconds wall_time() const override { return loop_.wall_time(); }
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
  void send(ApiRequest request, OnAnswer on_answer, bool is_retry);
  HttpRequest http_request(const ApiRequest& request);
  const std::string& token(bool read_again);
  ApiAnswer finish(const std::string& verb, HttpAnswer answer) TOPOLET_EXCLUDES(mutex_);

  HttpLoop& loop_;
  const ApiServer server_;
  const Grants grants_;
  std::string token_;
  Clock::time_point token_read_{};
  Clock::time_point paused_until_{};
  mutable Mutex mutex_;
  Counts counts_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::api
