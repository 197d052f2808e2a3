#include "cluster/api/access_review.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace topolet::api {
namespace {

constexpr const char* kReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
constexpr std::chrono::seconds kFirstReviewPause{2};
constexpr std::chrono::seconds kLongestReviewPause{30};

nlohmann::json review_of(const Right& right) {
  nlohmann::json attributes = {{"verb", right.verb}, {"group", right.group}, {"resource", right.resource}};
  if (!right.subresource.empty()) attributes["subresource"] = right.subresource;
  if (!right.name_space.empty()) attributes["namespace"] = right.name_space;
  if (!right.name.empty()) attributes["name"] = right.name;
  if (!right.field.empty()) {
    nlohmann::json requirement = {{"key", right.field}, {"operator", "In"}, {"values", {right.field_value}}};
    attributes["fieldSelector"] = {{"requirements", nlohmann::json::array({std::move(requirement)})}};
  }
  return {{"apiVersion", "authorization.k8s.io/v1"},
          {"kind", "SelfSubjectAccessReview"},
          {"spec", {{"resourceAttributes", std::move(attributes)}}}};
}

bool is_allowed(const ApiAnswer& answer) {
  const auto status = answer.body.find("status");
  return status != answer.body.end() && status->is_object() && status->value("allowed", false);
}

/// It answered, and says that this cannot be asked: nothing is known, and nothing will be.
bool cannot_be_asked(const ApiAnswer& answer) {
  return answer.status == 403 || answer.status == 404 || answer.status == 405;
}

}  // namespace

std::string to_string(const Right& right) {
  return fmt::format("{} {}{}{}{}{}", right.verb, right.resource,
                     right.subresource.empty() ? "" : "/" + right.subresource,
                     right.group.empty() ? "" : "." + right.group, right.name.empty() ? "" : " " + right.name,
                     right.name_space.empty() ? "" : " in " + right.name_space);
}

AccessReview::AccessReview(Api& api, std::vector<Right> rights, std::chrono::milliseconds ask_again, Log& log)
    : api_(api),
      rights_(std::move(rights)),
      ask_again_(ask_again),
      trouble_("the API server does not tell what may be done", log) {}

AccessReview::~AccessReview() { *is_alive_ = false; }

void AccessReview::start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  begin_after(std::chrono::milliseconds(0));
}

void AccessReview::begin_after(std::chrono::milliseconds pause) {
  api_.after(pause, [this, alive = is_alive_] {
    if (!*alive) return;
    found_.clear();
    ask(0);
  });
}

void AccessReview::ask(std::size_t next) {
  if (next == rights_.size()) return finish();
  api_.request({.verb = "create", .method = "POST", .path = kReviews, .body = review_of(rights_[next])},
               [this, alive = is_alive_, next](const ApiAnswer& answer) {
                 if (*alive) take(next, answer);
               });
}

void AccessReview::take(std::size_t asked, const ApiAnswer& answer) {
  if (!answer.ok() && !cannot_be_asked(answer)) {
    trouble_.failed(answer.error);
    pause_ = std::clamp<std::chrono::milliseconds>(2 * pause_, kFirstReviewPause, kLongestReviewPause);
    return begin_after(pause_);
  }
  trouble_.works();
  if (answer.ok() && !is_allowed(answer)) found_.push_back(to_string(rights_[asked]));
  ask(asked + 1);
}

void AccessReview::finish() {
  const bool is_new = missing_ != found_;
  missing_ = found_;
  pause_ = found_.empty() ? std::chrono::milliseconds(0)
                          : std::clamp<std::chrono::milliseconds>(2 * pause_, kFirstReviewPause, kLongestReviewPause);
  begin_after(found_.empty() ? ask_again_ : pause_);
  if (is_new && on_change_) on_change_();
}

}  // namespace topolet::api
