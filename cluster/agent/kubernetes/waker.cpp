#include "cluster/agent/kubernetes/waker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/grown_annotation.hpp"
#include "cluster/api/json_fields.hpp"

namespace topolet::agent {
namespace {

using api::text_field;
using nlohmann::json;

constexpr std::chrono::seconds kWakeUpPeriod{1};
/// The time for which a Lease may stay unchanged. The extender renews it every second, or every hundred if so
/// configured.
constexpr std::chrono::seconds kLeaseAge{15};
/// How long an extender that was seen to renew it is believed to do so.
constexpr std::chrono::seconds kTrust{30};
/// Names are enough, of whose pods nothing else is sent.
constexpr const char* kMetadataOnly =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

}  // namespace

Waker::Waker(Options options, api::Api& api, Log& log)
    : options_(std::move(options)),
      api_(api),
      trouble_("schedulers cannot be told that there is room again", log),
      lease_trouble_("whether a topolet-extender leads cannot be read, so that this agent wakes schedulers itself",
                     log) {}

void Waker::zone_has_grown() {
  if (options_.lease_name.empty()) return wake();
  has_grown_ = true;
  look_at_lease(std::max(trusted_until_, api_.now()));
}

void Waker::look_at_lease(Time when) {
  if (std::exchange(is_looking_, true)) return;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(when - api_.now());
  if (wait <= std::chrono::milliseconds::zero()) return ask_for_lease();
  api_.after(wait, [this] { ask_for_lease(); });
}

void Waker::ask_for_lease() {
  api_.request({.verb = "get",
                .path = fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}?resourceVersion=0",
                                    options_.lease_namespace, options_.lease_name)},
               [this](const api::ApiAnswer& answer) {
                 is_looking_ = false;
                 take_lease(answer);
               });
}

void Waker::take_lease(const api::ApiAnswer& answer) {
  if (answer.ok() || answer.status == 404) {
    lease_trouble_.works();
  } else {
    lease_trouble_.failed(answer.error);
  }
  const std::string holder = text_field(answer.body, "spec", "holderIdentity");
  if (holder.empty()) return wake();
  std::string mark = holder + ' ' + text_field(answer.body, "spec", "renewTime");
  if (mark != mark_) {
    const bool was_renewed = !std::exchange(mark_, std::move(mark)).empty();
    mark_seen_ = api_.now();
    if (was_renewed) return leave_it_to_extender();
  }
  const json& seconds = api::field(answer.body, "spec", "leaseDurationSeconds");
  const std::chrono::seconds duration(seconds.is_number_integer() ? seconds.get<std::int64_t>() : 0);
  const Time dead = mark_seen_ + std::clamp<std::chrono::seconds>(duration, kLeaseAge, std::chrono::minutes(10));
  if (api_.now() < dead) return look_at_lease(dead);
  wake();
}

void Waker::leave_it_to_extender() {
  has_grown_ = false;
  trusted_until_ = api_.now() + kTrust;
}

void Waker::wake() {
  has_grown_ = false;
  if (std::exchange(is_wake_due_, true)) return;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(next_wake_up_, api_.now()) - api_.now());
  api_.after(wait, [this] {
    is_wake_due_ = false;
    next_wake_up_ = api_.now() + kWakeUpPeriod;
    ask_who_waits(0);
  });
}

/// The API server answers from its memory, which no limit makes shorter: so only who may be meant is asked for.
void Waker::ask_who_waits(std::size_t scheduler) {
  if (scheduler >= options_.scheduler_names.size()) return;
  const std::string selector =
      fmt::format("spec.schedulerName={},spec.nodeName=,status.phase=Pending", options_.scheduler_names[scheduler]);
  api_.request({.verb = "list",
                .path = "/api/v1/pods?resourceVersion=0&fieldSelector=" + api::query_escaped(selector),
                .accept = kMetadataOnly},
               [this, scheduler](const api::ApiAnswer& answer) {
                 if (!answer.ok()) return trouble_.failed(answer.error);
                 if (!api::list_field(answer.body, "items").empty()) return annotate_node();
                 ask_who_waits(scheduler + 1);
               });
}

void Waker::annotate_node() {
  api_.request(api::grown_request(options_.node_name, api_.wall_time()), [this](const api::ApiAnswer& answer) {
    if (!answer.ok()) return trouble_.failed(answer.error);
    ++wake_ups_;
    trouble_.works();
  });
}

}  // namespace topolet::agent
