#include "cluster/agent/kubernetes/node_owner.hpp"

#include <fmt/format.h>

#include <utility>

#include "cluster/api/json_fields.hpp"

namespace topolet::agent {
namespace {

/// A Node that was deleted is noticed by the object that goes with it, unless nobody collects such objects.
constexpr std::chrono::minutes kLooksForItsNode{5};

}  // namespace

NodeOwner::NodeOwner(std::string node_name, api::Api& api, Log& log)
    : node_name_(std::move(node_name)),
      api_(api),
      log_(log),
      missing_(fmt::format("the topology of node {} is not published", node_name_), log_),
      unreadable_(fmt::format("the Node {} cannot be read, so that its topology will not go with it", node_name_),
                  log_) {}

void NodeOwner::doubt_what_is_old() {
  if (uid_.empty() || api_.now() - told_ >= kLooksForItsNode) is_due_ = true;
}

void NodeOwner::ask(std::function<void(const Status&)> then) {
  api_.request({.verb = "get", .path = "/api/v1/nodes/" + node_name_},
               [this, then = std::move(then)](const api::ApiAnswer& answer) { then(take(answer)); });
}

Status NodeOwner::take(const api::ApiAnswer& answer) {
  constexpr int kForbidden = 403;
  constexpr int kMissing = 404;
  if (answer.status == kMissing) {
    is_there_ = false;
    missing_.failed("there is no Node of this name: it has not registered yet, was deleted, or --node-name is wrong");
    return Error{Code::kNotFound, "there is no such Node"};
  }
  if (!answer.ok() && answer.status != kForbidden) return Error{Code::kUnavailable, answer.error};
  missing_.works();
  is_due_ = false;
  is_there_ = true;
  told_ = api_.now();
  if (!answer.ok()) {
    unreadable_.failed(answer.error);
    return {};
  }
  unreadable_.works();
  const std::string before = std::exchange(uid_, api::text_field(answer.body, "metadata", "uid"));
  if (!before.empty() && before != uid_)
    log_.info("the Node {} was registered again, with the uid {} instead of {}: its topology belongs to the new one",
              node_name_, uid_, before);
  return {};
}

}  // namespace topolet::agent
