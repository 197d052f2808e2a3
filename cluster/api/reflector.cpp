#include "cluster/api/reflector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cluster/api/json_fields.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

std::string version_of(const json& object) { return text_field(object, "metadata", "resourceVersion"); }

int code_of(const json& status) {
  const json& code = field(status, "code");
  return code.is_number_integer() ? code.get<int>() : 0;
}

}  // namespace

Reflector::Reflector(ApiClient& client, Options options, Handlers handlers, Log& log)
    : client_(client),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      trouble_(options_.name + " cannot be followed", log) {}

Reflector::~Reflector() {
  *is_alive_ = false;
  if (watch_number_ != 0) client_.abort(watch_number_);
}

void Reflector::list(const std::string& continue_token) {
  if (continue_token.empty()) pages_.clear();
  ApiRequest request{.verb = "list", .path = fmt::format("{}?limit={}", options_.path, options_.page_size)};
  request.timeout = std::chrono::seconds(30);
  if (!options_.field_selector.empty()) request.path += "&fieldSelector=" + query_escaped(options_.field_selector);
  if (!continue_token.empty()) request.path += "&continue=" + query_escaped(continue_token);
  client_.request(std::move(request), [this, alive = is_alive_](ApiAnswer answer) {
    if (*alive) take_page(std::move(answer));
  });
}

void Reflector::take_page(ApiAnswer answer) {
  if (!answer.ok()) return fail(answer.error);
  const std::string version = version_of(answer.body);
  if (version.empty()) return fail("the answer is no list");
  for (const json& item : list_field(answer.body, "items")) {
    if (handlers_.on_listed) {
      handlers_.on_listed(item);
    } else {
      pages_.push_back(item);
    }
  }
  const std::string next = text_field(answer.body, "metadata", "continue");
  if (!next.empty()) return list(next);
  version_ = version;
  pause_ = {};
  has_synced_ = true;
  trouble_.works();
  handlers_.on_list(std::exchange(pages_, {}));
  watch();
}

void Reflector::watch() {
  const std::chrono::seconds duration = options_.watch_duration;
  std::string path = fmt::format("{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                                 options_.path, duration.count(), query_escaped(version_));
  if (!options_.field_selector.empty()) path += "&fieldSelector=" + query_escaped(options_.field_selector);
  got_something_ = false;
  watch_problem_.clear();
  watch_number_ = client_.watch(
      path, duration,
      [this, alive = is_alive_](std::string_view line) {
        if (*alive) take_line(line);
      },
      [this, alive = is_alive_](const ApiAnswer& answer) {
        if (*alive) end_watch(answer);
      });
}

void Reflector::take_line(std::string_view line) {
  if (!watch_problem_.empty()) return;
  const json event = json::parse(line, nullptr, false);
  const std::string type = event.is_discarded() ? "" : text_field(event, "type");
  if (type.empty()) {
    watch_problem_ = "a line of the watch is no event";
    return;
  }
  const json& object = field(event, "object");
  if (type == "ERROR") {
    watch_problem_ = fmt::format("the watch ended with {}: {}", code_of(object), text_field(object, "message"));
    // 410: the version is too old. After others a list is right as well.
    version_.clear();
    return;
  }
  const std::string version = version_of(object);
  if (version.empty()) {
    watch_problem_ = "an object has no resourceVersion";
    return;
  }
  version_ = version;
  got_something_ = true;
  pause_ = {};
  trouble_.works();
  if (type != "BOOKMARK") handlers_.on_change(type, object);
}

/// An ordinary end, and a version that is too old, are not errors: each watch ends some time.
void Reflector::end_watch(const ApiAnswer& answer) {
  watch_number_ = 0;
  const bool is_too_old =
      answer.status == 410 || (version_.empty() && watch_problem_.find(" 410") != std::string::npos);
  if (is_too_old) {
    version_.clear();
    return list_again();
  }
  if (!watch_problem_.empty()) return fail(watch_problem_);
  if (!answer.ok()) {
    // A server that restarts ends all connections. Changes that were missed meanwhile are in the history, mostly.
    if (got_something_) return watch();
    return fail(answer.error);
  }
  trouble_.works();
  if (!got_something_) pause_ = std::max(pause_, options_.first_pause);
  list_again();
}

void Reflector::fail(const std::string& why) {
  trouble_.failed(why);
  list_again();
}

/// After a pause that grows as long as nothing comes; a watch instead, where the version is known.
void Reflector::list_again() {
  const auto pause = pause_;
  pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
  std::uniform_real_distribution<double> jitter(0.8, 1.2);
  client_.after(
      std::chrono::milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * jitter(random_))),
      [this, alive = is_alive_] {
        if (!*alive) return;
        if (version_.empty()) {
          list({});
        } else {
          watch();
        }
      });
}

}  // namespace topolet::api
