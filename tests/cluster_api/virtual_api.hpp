// An API server without a network, in virtual time: it answers at once, but not before whoever asked has gone on.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/api/api.hpp"
#include "tests/cluster_api/http_text.hpp"
#include "tests/cluster_api/object_store.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::testing {

/// One thread. `time` must outlive it.
class VirtualApi final : public api::Api {
 public:
  struct Request {
    std::chrono::milliseconds time{};
    std::string method;
    std::string path;  ///< with the query
  };

  explicit VirtualApi(VirtualTime& time) : time_(time), store_(time.clock()) {
    for (const Collection& collection : default_collections()) store_.add(collection);
  }

  void request(api::ApiRequest request, OnAnswer on_answer) override {
    requests_.push_back({time_.now(), request.method, request.path});
    api::ApiAnswer answer = is_refused(request) ? refusal() : served(request);
    time_.after({}, [on_answer = std::move(on_answer), answer = std::move(answer)] { on_answer(answer); });
  }
  void after(std::chrono::milliseconds delay, std::function<void()> task) override {
    time_.after(delay, std::move(task));
  }
  Clock::time_point now() const override { return time_.clock().steady(); }
  std::chrono::milliseconds wall_time() const override { return time_.clock().wall(); }

  /// Answers so to the next requests of this method.
  void refuse(const std::string& method, int status, int times) { refused_ = {method, status, times}; }

  const std::vector<Request>& requests() const { return requests_; }
  /// When something was asked for by this method below this path.
  std::vector<std::chrono::milliseconds> times(const std::string& method, const std::string& path) const {
    std::vector<std::chrono::milliseconds> times;
    for (const Request& request : requests_) {
      if (request.method == method && request.path.starts_with(path)) times.push_back(request.time);
    }
    return times;
  }

  // As functions of ApiServer.
  Json put(const std::string& collection, Json object) {
    return store_.put(*store_.locate(collection), std::move(object));
  }
  void remove(const std::string& path) { store_.erase(*store_.locate(path), Json()); }
  Json get(const std::string& path) { return store_.read(*store_.locate(path)).body; }
  std::vector<Version> history(const std::string& collection) { return store_.locate(collection)->kept->history; }

 private:
  struct Refused {
    std::string method;
    int status = 0;
    int times = 0;
  };

  bool is_refused(const api::ApiRequest& request) {
    if (refused_.times == 0 || refused_.method != request.method) return false;
    --refused_.times;
    return true;
  }
  api::ApiAnswer refusal() const {
    api::ApiAnswer answer;
    answer.status = refused_.status;
    answer.error = "told to fail";
    return answer;
  }
  api::ApiAnswer served(const api::ApiRequest& request) {
    const HttpTarget target = parse_target(request.path);
    const auto location = store_.locate(target.path);
    const Answer made = location ? done(request, *location, target.query) : Answer{404, Json("no such path")};
    api::ApiAnswer answer;
    answer.status = static_cast<int>(made.code);
    if (answer.ok()) {
      answer.body = made.body;
    } else {
      answer.error = made.body.dump();
    }
    return answer;
  }
  Answer done(const api::ApiRequest& request, const ObjectStore::Location& location, const Query& query) {
    if (request.method == "POST") return store_.create(location, request.body);
    if (request.method == "PUT") return store_.replace(location, request.body);
    if (request.method == "PATCH") return store_.merge_patch(location, request.body);
    return location.name.empty() ? store_.list(location, query) : store_.read(location);
  }

  VirtualTime& time_;
  ObjectStore store_;
  Refused refused_;
  std::vector<Request> requests_;
};

}  // namespace topolet::testing
