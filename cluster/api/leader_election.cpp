#include "cluster/api/leader_election.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "core/base/rfc3339.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

/// The time between the last act of one leader and the first of the next, for requests that are underway.
constexpr std::chrono::milliseconds kMargin{500};
constexpr const char* kAddress = "topolet.io/address";

/// The time, with as many digits as the API writes in a Lease.
std::string micro_time() {
  return rfc3339_us(std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()));
}

}  // namespace

LeaderElection::LeaderElection(Api& api, Options options, Handlers handlers, Log& log)
    : api_(api),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      log_(log),
      trouble_(fmt::format("the Lease {}/{} cannot be read or written", options_.name_space, options_.name), log) {}

std::string LeaderElection::path() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", options_.name_space);
}

std::optional<LeaderElection::Leader> LeaderElection::other_leader() const {
  const bool is_other = !holder_.identity.empty() && holder_.identity != options_.identity;
  if (!is_other || api_.now() >= holder_seen_ + holder_duration_) return std::nullopt;
  return holder_;
}

std::chrono::milliseconds LeaderElection::time_left() const {
  if (!is_leader()) return {};
  const auto others_begin = deadline_ - options_.renew_deadline + options_.duration;
  const auto left = std::chrono::floor<std::chrono::milliseconds>(others_begin - api_.now()) - kMargin;
  return std::max(left, std::chrono::milliseconds(0));
}

void LeaderElection::look() {
  if (has_given_up_) return;
  const Clock::time_point asked = api_.now();
  // Whoever has written the Lease last knows its version.
  if (is_leading_ && lease_.is_object()) return write(lease_of_ours(lease_), false, asked);
  ApiRequest request{.verb = "get", .path = path() + '/' + options_.name};
  request.timeout = options_.renew_deadline;
  request.waits_when_asked_to = false;
  api_.request(std::move(request), [this, alive = is_alive_, asked](const ApiAnswer& answer) {
    if (*alive && !has_given_up_) take_lease(answer, asked);
  });
}

void LeaderElection::take_lease(const ApiAnswer& answer, Clock::time_point asked) {
  if (answer.status == 404) {
    // Somebody has deleted it; whoever held it does not know yet.
    if (other_leader()) return look_again();
    const json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                        {"kind", "Lease"},
                        {"metadata", {{"name", options_.name}, {"namespace", options_.name_space}}}};
    return write(lease_of_ours(lease), true, asked);
  }
  if (!answer.ok()) {
    trouble_.failed(answer.error);
    return look_again();
  }
  trouble_.works();
  note_holder(answer.body, api_.now());
  if (other_leader()) {
    stop_leading("another replica holds the Lease");
    return look_again();
  }
  write(lease_of_ours(answer.body), false, asked);
}

/// A holder counts from when its last renewal was seen, as clocks of hosts differ.
void LeaderElection::note_holder(const json& lease, Clock::time_point now) {
  const json& spec = field(lease, "spec");
  Leader holder{text_field(spec, "holderIdentity"), text_field(lease, "metadata", "annotations", kAddress)};
  const std::string mark = fmt::format("{}\n{}\n{}", holder.identity, text_field(spec, "renewTime"),
                                       text_field(lease, "metadata", "resourceVersion"));
  if (mark == holder_mark_) return;
  if (holder.identity != holder_.identity && !holder.identity.empty())
    log_.info("{} holds the Lease {}/{}", holder.identity, options_.name_space, options_.name);
  holder_ = std::move(holder);
  holder_mark_ = mark;
  holder_seen_ = now;
  const json& seconds = field(spec, "leaseDurationSeconds");
  const std::int64_t duration = seconds.is_number_integer() ? seconds.get<std::int64_t>() : 0;
  holder_duration_ =
      std::max(options_.duration, std::chrono::milliseconds(std::clamp<std::int64_t>(duration, 0, 3600) * 1000));
}

json LeaderElection::lease_of_ours(const json& current) const {
  json lease = current;
  lease["metadata"].erase("managedFields");
  lease["metadata"]["annotations"][kAddress] = options_.address;
  json& spec = lease["spec"];
  if (!spec.is_object()) spec = json::object();
  const std::string now = micro_time();
  if (text_field(spec, "holderIdentity") != options_.identity) {
    const json& transitions = field(spec, "leaseTransitions");
    spec["leaseTransitions"] = (transitions.is_number_integer() ? transitions.get<std::int64_t>() : 0) + 1;
    spec["acquireTime"] = now;
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  spec["renewTime"] = now;
  return lease;
}

void LeaderElection::write(json lease, bool is_new, Clock::time_point asked) {
  ApiRequest request{.verb = is_new ? "create" : "update", .method = is_new ? "POST" : "PUT", .path = path()};
  if (!is_new) request.path += '/' + options_.name;
  request.body = std::move(lease);
  request.timeout = options_.renew_deadline;
  request.waits_when_asked_to = false;
  api_.request(std::move(request), [this, alive = is_alive_, asked](const ApiAnswer& answer) {
    if (!*alive || has_given_up_) return;
    if (answer.ok()) {
      trouble_.works();
      lease_ = answer.body;
      note_holder(answer.body, api_.now());
      // From when it was asked for: the others count from when they see it, which is later.
      lead_until(asked + options_.renew_deadline);
    } else {
      // Written by another one meanwhile, or not at all: the next look tells.
      if (answer.status != 409) trouble_.failed(answer.error);
      lease_ = nullptr;
    }
    look_again();
  });
}

void LeaderElection::lead_until(Clock::time_point deadline) {
  deadline_ = deadline;
  if (is_leading_ || api_.now() >= deadline_) return;
  is_leading_ = true;
  log_.info("this replica leads now");
  watch_deadline();
  handlers_.on_begin();
}

void LeaderElection::watch_deadline() {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - api_.now());
  api_.after(std::max(left, std::chrono::milliseconds(0)), [this, alive = is_alive_] {
    if (!*alive || !is_leading_) return;
    if (api_.now() < deadline_) return watch_deadline();
    stop_leading("the Lease could not be renewed in time");
  });
}

void LeaderElection::stop_leading(const char* why) {
  if (!std::exchange(is_leading_, false)) return;
  lease_ = nullptr;
  log_.warn("this replica leads no more: {}", why);
  handlers_.on_end();
}

void LeaderElection::look_again() {
  if (is_leading_ && api_.now() >= deadline_) stop_leading("the Lease could not be renewed in time");
  api_.after(options_.retry_period, [this, alive = is_alive_] {
    if (*alive) look();
  });
}

void LeaderElection::stand_down() {
  if (std::exchange(has_given_up_, true)) return;
  holds_lease_ = is_leading_;
  if (is_leading_) stop_leading("it ends");
}

void LeaderElection::give_up(std::function<void()> then) {
  stand_down();
  if (!holds_lease_ || holder_.identity != options_.identity) return then();
  // Only if nobody else has taken it: read first, and written with that version.
  ApiRequest read{.verb = "get", .path = path() + '/' + options_.name};
  read.timeout = std::chrono::seconds(2);
  api_.request(std::move(read), [this, then = std::move(then)](const ApiAnswer& answer) {
    json lease = answer.body;
    if (!answer.ok() || text_field(lease, "spec", "holderIdentity") != options_.identity) return then();
    lease["spec"]["holderIdentity"] = "";
    ApiRequest write{.verb = "update", .method = "PUT", .path = path() + '/' + options_.name, .body = std::move(lease)};
    write.timeout = std::chrono::seconds(2);
    api_.request(std::move(write), [then](const ApiAnswer&) { then(); });
  });
}

}  // namespace topolet::api
