#include "core/plugin/plugin_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/plugin/barrier.hpp"
#include "core/plugin/sink_replies.hpp"

namespace topolet {

static_assert(static_cast<int>(Happening::Kind::kPlaced) == TOPOLET_EVENT_PLACED);
static_assert(static_cast<int>(Happening::Kind::kStarted) == TOPOLET_EVENT_STARTED);
static_assert(static_cast<int>(Happening::Kind::kMoved) == TOPOLET_EVENT_MOVED);
static_assert(static_cast<int>(Happening::Kind::kResized) == TOPOLET_EVENT_RESIZED);
static_assert(static_cast<int>(Happening::Kind::kReleased) == TOPOLET_EVENT_RELEASED);

namespace {

/// Runs one call and judges how it ended. `call` returns the plugin's status.
template <class Call>
Status ask(const std::string& plugin, const char* function, const SinkReply& reply, Call&& call) {
  std::int32_t status = TOPOLET_FAILED;
  if (const auto thrown = thrown_by([&] { status = call(); })) {
    return Error{Code::kInternal, fmt::format("{}: {} {}", plugin, function, *thrown)};
  }
  if (!reply.fault.empty()) {
    return Error{Code::kInternal,
                 fmt::format("{}: {} gave an answer that makes no sense: {}", plugin, function, reply.fault)};
  }
  if (status == TOPOLET_OK) return {};
  const std::string why = reply.error.empty() ? "no reason given" : reply.error;
  if (status == TOPOLET_FAILED)
    return Error{Code::kUnavailable, fmt::format("{}: {} failed: {}", plugin, function, why)};
  if (status == TOPOLET_THREW) return Error{Code::kInternal, fmt::format("{}: {} threw: {}", plugin, function, why)};
  return Error{Code::kInternal,
               fmt::format("{}: {} returned {}, which it must not: {}", plugin, function, status, why)};
}

std::string too_small(std::uint32_t struct_size, std::size_t least) {
  return fmt::format("has a struct_size of {}; it must be {} or more", struct_size, least);
}

/// What is wrong with a capability; nothing also for one that the plugin does not have.
template <class Capability, class Function>
std::string fault_of(const Capability* capability, Function Capability::*function) {
  if (capability == nullptr) return {};
  if (capability->struct_size < sizeof(Capability)) return too_small(capability->struct_size, sizeof(Capability));
  return capability->*function == nullptr ? "has no function" : "";
}

}  // namespace

PluginPolicy::PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance)
    : name_(std::move(name)), host_(std::move(host)), instance_(instance) {}

PluginPolicy::~PluginPolicy() {
  if (instance_ == nullptr || instance_->destroy == nullptr) return;
  // A destroy() that throws has nobody to tell; the instance is gone either way.
  (void)thrown_by([this] { instance_->destroy(instance_); });
}

Result<std::shared_ptr<PluginPolicy>> PluginPolicy::adopt(std::string name, std::unique_ptr<PluginHost> host,
                                                          const topolet_instance* instance) {
  if (instance->struct_size < sizeof(topolet_instance)) {
    const std::string fault = too_small(instance->struct_size, sizeof(topolet_instance));
    return Error{Code::kInternal, fmt::format("{}: the instance that create gave {}", name, fault)};
  }
  if (instance->get_capability == nullptr || instance->destroy == nullptr) {
    return Error{Code::kInternal, name + ": create gave an instance without get_capability or destroy"};
  }
  std::shared_ptr<PluginPolicy> policy(new PluginPolicy(std::move(name), std::move(host), instance));
  if (auto status = policy->read_capabilities(); !status) return status.error();
  return policy;
}

Status PluginPolicy::read_capabilities() {
  const auto get = [this](std::string_view id) { return instance_->get_capability(instance_, view_of(id)); };
  const auto thrown = thrown_by([&] {
    score_ = static_cast<const topolet_score*>(get(TOPOLET_SCORE_ID));
    propose_ = static_cast<const topolet_propose*>(get(TOPOLET_PROPOSE_ID));
    pick_ = static_cast<const topolet_pick*>(get(TOPOLET_PICK_ID));
    adjust_ = static_cast<const topolet_adjust*>(get(TOPOLET_ADJUST_ID));
    events_ = static_cast<const topolet_events*>(get(TOPOLET_EVENTS_ID));
    tick_ = static_cast<const topolet_tick*>(get(TOPOLET_TICK_ID));
  });
  if (thrown) return Error{Code::kInternal, fmt::format("{}: get_capability {}", name_, *thrown)};
  const auto check = [this](const std::string& fault, const char* id) -> Status {
    if (fault.empty()) return {};
    return Error{Code::kInternal, fmt::format("{}: its capability {} {}", name_, id, fault)};
  };
  for (const Status& status : {check(fault_of(score_, &topolet_score::score), TOPOLET_SCORE_ID),
                               check(fault_of(propose_, &topolet_propose::propose), TOPOLET_PROPOSE_ID),
                               check(fault_of(pick_, &topolet_pick::pick), TOPOLET_PICK_ID),
                               check(fault_of(adjust_, &topolet_adjust::adjust), TOPOLET_ADJUST_ID),
                               check(fault_of(events_, &topolet_events::notify), TOPOLET_EVENTS_ID),
                               check(fault_of(tick_, &topolet_tick::tick), TOPOLET_TICK_ID)}) {
    if (!status) return status.error();
  }
  if (tick_ != nullptr && (tick_->interval_ms < TOPOLET_TICK_MIN_MS || tick_->interval_ms > TOPOLET_TICK_MAX_MS)) {
    return Error{Code::kInternal, fmt::format("{}: it wants a tick every {} ms; from {} to {} ms are possible", name_,
                                              tick_->interval_ms, TOPOLET_TICK_MIN_MS, TOPOLET_TICK_MAX_MS)};
  }
  return {};
}

std::vector<std::string> PluginPolicy::capabilities() const {
  std::vector<std::string> ids;
  if (score_ != nullptr) ids.emplace_back(TOPOLET_SCORE_ID);
  if (propose_ != nullptr) ids.emplace_back(TOPOLET_PROPOSE_ID);
  if (pick_ != nullptr) ids.emplace_back(TOPOLET_PICK_ID);
  if (adjust_ != nullptr) ids.emplace_back(TOPOLET_ADJUST_ID);
  if (events_ != nullptr) ids.emplace_back(TOPOLET_EVENTS_ID);
  if (tick_ != nullptr) ids.emplace_back(TOPOLET_TICK_ID);
  return ids;
}

std::chrono::milliseconds PluginPolicy::tick_interval() const {
  return std::chrono::milliseconds(tick_ == nullptr ? 0 : tick_->interval_ms);
}

Result<std::vector<Verdict>> PluginPolicy::score(const PolicyRequest& request) {
  return score(RequestView(request, std::make_shared<const TopologyView>(request.topology)));
}

Result<std::vector<NodeSet>> PluginPolicy::propose(const PolicyRequest& request) {
  return propose(RequestView(request, std::make_shared<const TopologyView>(request.topology)));
}

Result<Pick> PluginPolicy::pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                std::size_t count) {
  return pick(RequestView(request, std::make_shared<const TopologyView>(request.topology)), candidate, usable, count);
}

Result<Pick> PluginPolicy::pick_beside(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                       const CpuSet& chosen) {
  return pick(RequestView(request, std::make_shared<const TopologyView>(request.topology)), candidate, usable,
              request.exclusive_cpus, chosen);
}

Result<Adjustment> PluginPolicy::adjust(const PolicyRequest& request, const Chosen& chosen) {
  return adjust(RequestView(request, std::make_shared<const TopologyView>(request.topology)), chosen);
}

Result<std::vector<Verdict>> PluginPolicy::score(const RequestView& request) {
  const std::size_t count = request.view().candidate_count;
  ScoreReply reply{{host_->given_up()}, std::vector<Verdict>(count), std::vector<bool>(count)};
  if (score_ == nullptr) return std::move(reply.verdicts);
  host_->given_up() = false;
  const topolet_score_sink sink = sink_into(reply);
  const Status asked = ask(name_, "score", reply, [&] { return score_->score(instance_, &request.view(), &sink); });
  if (!asked) return asked.error();
  return std::move(reply.verdicts);
}

Result<std::vector<NodeSet>> PluginPolicy::propose(const RequestView& request) {
  ProposeReply reply{{host_->given_up()}};
  if (propose_ == nullptr) return std::move(reply.proposals);
  host_->given_up() = false;
  const topolet_propose_sink sink = sink_into(reply);
  const Status asked =
      ask(name_, "propose", reply, [&] { return propose_->propose(instance_, &request.view(), &sink); });
  if (!asked) return asked.error();
  return std::move(reply.proposals);
}

Result<Pick> PluginPolicy::pick(const RequestView& request, std::size_t candidate, const CpuSet& usable,
                                std::size_t count, const CpuSet& chosen) {
  PickReply reply{{host_->given_up()}};
  if (pick_ == nullptr) return std::move(reply.pick);
  host_->given_up() = false;
  const topolet_pick_sink sink = sink_into(reply);
  const topolet_pick_request pick_request{sizeof(topolet_pick_request),
                                          static_cast<std::uint32_t>(candidate),
                                          &request.view(),
                                          view_of(usable),
                                          view_of(chosen),
                                          static_cast<std::uint32_t>(count),
                                          0};
  const Status asked = ask(name_, "pick", reply, [&] { return pick_->pick(instance_, &pick_request, &sink); });
  if (!asked) return asked.error();
  return std::move(reply.pick);
}

Result<Adjustment> PluginPolicy::adjust(const RequestView& request, const Chosen& chosen) {
  AdjustReply reply{{host_->given_up()}};
  if (adjust_ == nullptr) return std::move(reply.adjustment);
  host_->given_up() = false;
  const topolet_adjust_sink sink = sink_into(reply);
  const Placement& placement = chosen.placement;
  const topolet_adjust_request adjust_request{sizeof(topolet_adjust_request),
                                              static_cast<std::uint32_t>(chosen.candidate),
                                              &request.view(),
                                              static_cast<std::int32_t>(placement.mode),
                                              0,
                                              view_of(placement.cpus),
                                              view_of(placement.withheld),
                                              view_of(chosen.memory)};
  const Status asked = ask(name_, "adjust", reply, [&] { return adjust_->adjust(instance_, &adjust_request, &sink); });
  if (!asked) return asked.error();
  return std::move(reply.adjustment);
}

Status PluginPolicy::notify(const Happening& happening, const TopologyView& topology) {
  if (events_ == nullptr) return {};
  SinkReply reply{host_->given_up()};
  host_->given_up() = false;
  const topolet_event_sink sink = sink_into(reply);
  const WorkloadView shown(happening.workload);
  topolet_workload workload = shown.view();
  workload.env = {nullptr, 0};
  const Placement& placement = happening.placement;
  const topolet_event event{sizeof(topolet_event),
                            static_cast<std::int32_t>(happening.kind),
                            &workload,
                            static_cast<std::int32_t>(placement.mode),
                            0,
                            view_of(placement.cpus),
                            view_of(placement.withheld),
                            view_of(placement.mems),
                            &topology.view()};
  const PluginHost::Writing writing(*host_);
  return ask(name_, "notify", reply, [&] { return events_->notify(instance_, &event, &sink); });
}

Result<std::vector<ReplacementWish>> PluginPolicy::tick(const TickView& tick, const TopologyView& topology,
                                                        std::chrono::milliseconds now) {
  TickReply reply{{host_->given_up()}, name_, tick.ledger};
  if (tick_ == nullptr) return std::move(reply.wishes);
  host_->given_up() = false;
  const topolet_tick_sink sink = sink_into(reply);
  const LedgerStructs ledger(tick.ledger, *topology.topology());
  const topolet_tick_request request{sizeof(topolet_tick_request), 0, static_cast<std::uint64_t>(now.count()),
                                     &topology.view(), &ledger.view()};
  const PluginHost::Writing writing(*host_);
  const Status asked = ask(name_, "tick", reply, [&] { return tick_->tick(instance_, &request, &sink); });
  if (!asked) return asked.error();
  return std::move(reply.wishes);
}

}  // namespace topolet
