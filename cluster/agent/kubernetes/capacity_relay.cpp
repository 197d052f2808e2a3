#include "cluster/agent/kubernetes/capacity_relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/agent/socket_channel.hpp"
#include "cluster/api/json_fields.hpp"
#include "core/base/index_set.hpp"
#include "core/base/rfc3339.hpp"
#include "core/base/text.hpp"

namespace topolet::agent {
namespace {

using api::list_field;
using api::text_field;
using nlohmann::json;

constexpr const char* kOfflineMilli = "offline-capacity-milli";
constexpr const char* kOfflineUntil = "offline-capacity-until";
constexpr const char* kRelaySource = "nrt";
constexpr int kMaxAnswerBytes = 1 << 20;
constexpr std::chrono::milliseconds kRelayPatience{8000};
/// The time between two requests. The stream has reported the first by then.
constexpr std::chrono::milliseconds kRelayPeriod{1000};
constexpr std::chrono::milliseconds kLongestRelayRetry{5000};
/// For what comes to its end, or into reach of kLongestHandedDown, without anything happening.
constexpr std::chrono::milliseconds kRelayLooksAgain{60'000};
/// The longest time to request. topoletd accepts up to 31 days: longer offers are renewed before they end.
constexpr std::chrono::hours kLongestHandedDown{24 * 30};
constexpr std::chrono::hours kLongEnough{24 * 15};

std::optional<std::uint32_t> node_of(const json& zone) {
  constexpr std::string_view kPrefix = "node-";
  const std::string name = text_field(zone, "name");
  if (text_field(zone, "type") != "Node" || !name.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t node = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, node);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return node;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::string attribute_of(const json& zone, const char* name) {
  for (const json& attribute : list_field(zone, "attributes")) {
    if (text_field(attribute, "name") == name) return text_field(attribute, "value");
  }
  return {};
}

std::int64_t nominal_milli(const watch::v1::Node& node) {
  if (node.memory_only()) return 0;
  return static_cast<std::int64_t>(CpuSet::parse(node.cpus()).value_or(CpuSet()).size()) * 1000;
}

/// Returns true if a value set until `told` need not be renewed to last until `offered`.
bool lasts_as_long(std::chrono::milliseconds told, std::chrono::milliseconds offered, std::chrono::milliseconds now) {
  return told == offered || std::min(told, offered) > now + kLongEnough;
}

}  // namespace

OfferedCapacities read_offered_capacities(const json& object) {
  OfferedCapacities offered;
  for (const json& zone : list_field(object, "zones")) {
    const auto node = node_of(zone);
    const std::string milli_text = attribute_of(zone, kOfflineMilli);
    if (!node || milli_text.empty()) continue;
    const std::string until_text = attribute_of(zone, kOfflineUntil);
    const auto milli = whole_number(milli_text);
    const auto until = parse_rfc3339(until_text);
    if (milli && until) {
      offered.by_node[*node] = {std::max<std::int64_t>(0, *milli), *until};
    } else {
      offered.unusable = fmt::format(
          "zone node-{}: {} is '{}' and {} is '{}'; it needs a whole number and an RFC 3339 "
          "time, such as 12000 and 2026-01-31T12:00:00Z",
          *node, kOfflineMilli, printable(milli_text, 40), kOfflineUntil, printable(until_text, 40));
    }
  }
  return offered;
}

std::optional<control::v1::SetCapacityRequest> capacity_request(const watch::v1::Node& node,
                                                                const watch::v1::Capacity* told,
                                                                const OfferedCapacity* offered,
                                                                std::chrono::milliseconds now) {
  const std::int64_t nominal = nominal_milli(node);
  const bool is_in_force = told != nullptr && told->until_ms() > now.count();
  if (nominal == 0 || (is_in_force && told->source() != kRelaySource)) return std::nullopt;
  control::v1::SetCapacityRequest request;
  request.set_node(node.os_index());
  request.set_source(kRelaySource);
  if (offered == nullptr || offered->until <= now) {
    // One that has expired, topoletd forgets by itself.
    return is_in_force ? std::optional(request) : std::nullopt;
  }
  const std::int64_t milli = std::min(offered->milli, nominal);
  if (is_in_force && told->effective_cpu_milli() == milli &&
      lasts_as_long(std::chrono::milliseconds(told->until_ms()), offered->until, now))
    return std::nullopt;
  request.set_milli(milli);
  request.set_until_ms(std::min(offered->until, now + std::chrono::milliseconds(kLongestHandedDown)).count());
  return request;
}

CapacityRelay::CapacityRelay(api::HttpLoop& loop, const std::string& socket, NodeState node_state, Log& log)
    : loop_(loop),
      node_state_(std::move(node_state)),
      trouble_(fmt::format("what others say of this node's capacity cannot be told to topoletd ({})", socket), log),
      unusable_("what others say of this node's capacity is not used", log),
      stub_(control::v1::Control::NewStub(connect_to_socket(socket, kMaxAnswerBytes))) {}

void CapacityRelay::take_object(const json& object) {
  offered_ = read_offered_capacities(object);
  is_object_known_ = true;
  if (offered_.unusable.empty()) {
    unusable_.works();
  } else {
    unusable_.failed(offered_.unusable);
  }
  look_soon();
}

void CapacityRelay::look_soon() { look_at(loop_.now()); }

/// Not later than was asked for before, and not within a second after a request.
void CapacityRelay::look_at(Time due) {
  if (is_busy_) return;
  due = std::max(due, not_before_);
  if (timer_ && due_ <= due) return;
  if (timer_) loop_.cancel(*timer_);
  due_ = due;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due - loop_.now());
  timer_ = loop_.after(std::max(std::chrono::milliseconds(0), wait), [this] {
    timer_.reset();
    look();
  });
}

void CapacityRelay::look() {
  const std::optional<watch::v1::Snapshot> state = node_state_();
  if (!state || !is_object_known_) return;  // until node_changed(), or take_object()
  const std::chrono::milliseconds now = loop_.wall_time();
  for (const watch::v1::Node& node : state->machine().nodes()) {
    const auto told = std::find_if(state->capacities().begin(), state->capacities().end(),
                                   [&node](const auto& capacity) { return capacity.node() == node.os_index(); });
    const auto offered = offered_.by_node.find(node.os_index());
    const auto request = capacity_request(node, told == state->capacities().end() ? nullptr : &*told,
                                          offered == offered_.by_node.end() ? nullptr : &offered->second, now);
    if (request) return hand_down(*request);
  }
  trouble_.works();
  look_at(loop_.now() + kRelayLooksAgain);
}

void CapacityRelay::hand_down(const control::v1::SetCapacityRequest& request) {
  is_busy_ = true;
  calls_.call<control::v1::SetCapacityResponse>(
      kRelayPatience, request, [this](auto... arguments) { stub_->async()->SetCapacity(std::move(arguments)...); },
      [this](Result<control::v1::SetCapacityResponse> answer) {
        loop_.post([this, answer = std::move(answer)] { take_answer(answer); });
      });
}

void CapacityRelay::take_answer(const Result<control::v1::SetCapacityResponse>& answer) {
  is_busy_ = false;
  if (answer) {
    ++counts_.handed_down;
    retry_ = {};
    trouble_.works();
  } else {
    ++counts_.failed;
    retry_ = std::clamp(2 * retry_, kRelayPeriod, kLongestRelayRetry);
    trouble_.failed(answer.error().message);
  }
  not_before_ = loop_.now() + std::max(kRelayPeriod, retry_);
  look_soon();
}

}  // namespace topolet::agent
