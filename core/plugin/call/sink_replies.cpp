#include "core/plugin/call/sink_replies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/utf8.hpp"
#include "core/plugin/call/barrier.hpp"

namespace topolet::plugin {

static_assert(static_cast<int>(placement::Verdict::Kind::kAbstain) == TOPOLET_VERDICT_ABSTAIN);
static_assert(static_cast<int>(placement::Verdict::Kind::kReject) == TOPOLET_VERDICT_REJECT);
static_assert(static_cast<int>(placement::Verdict::Kind::kScore) == TOPOLET_VERDICT_SCORE);

namespace {

constexpr std::size_t kMaxSetWords = (kMaxOsIndex + 1) / 64;

/// Only makes sure that the set can be read; whether its indices exist is for the core to judge.
std::int32_t check_set(SinkReply& reply, topolet_set set, const char* what, bool already_set) {
  if (reply.call_abandoned) return TOPOLET_LATE;
  if (already_set) return reply.record_fault(TOPOLET_DUPLICATE, fmt::format("{} is set twice", what));
  if (set.words == nullptr && set.count != 0) {
    return reply.record_fault(TOPOLET_INVALID, fmt::format("{} is a null pointer", what));
  }
  if (set.count > kMaxSetWords) {
    return reply.record_fault(TOPOLET_OUT_OF_RANGE,
                              fmt::format("{} has {} words; the highest index is {}", what, set.count, kMaxOsIndex));
  }
  return TOPOLET_OK;
}

template <class Set>
Set to_set(topolet_set set) {
  return Set::from_words({set.words, set.words + set.count});
}

std::string_view bytes_of(topolet_str string) {
  return string.len == 0 ? std::string_view() : std::string_view(string.ptr, string.len);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

std::int32_t add_field(AdjustReply& reply, Fields& fields, const char* noun, topolet_str key, topolet_str value) {
  if (reply.call_abandoned) return TOPOLET_LATE;
  if ((key.ptr == nullptr && key.len != 0) || (value.ptr == nullptr && value.len != 0)) {
    return reply.record_fault(TOPOLET_INVALID, fmt::format("{} is a null pointer", noun));
  }
  if (key.len == 0) return reply.record_fault(TOPOLET_INVALID, fmt::format("{} has no name", noun));
  if (key.len > TOPOLET_ADJUST_MAX_KEY || value.len > TOPOLET_ADJUST_MAX_VALUE) {
    return reply.record_fault(TOPOLET_OUT_OF_RANGE,
                              fmt::format("{} has {} and {} bytes; the limits are {} and {}", noun, key.len, value.len,
                                          TOPOLET_ADJUST_MAX_KEY, TOPOLET_ADJUST_MAX_VALUE));
  }
  if (!is_utf8(bytes_of(key)) || !is_utf8(bytes_of(value))) {
    return reply.record_fault(TOPOLET_INVALID, fmt::format("{} {} is not UTF-8", noun, sanitize_text(key)));
  }
  const auto is_this = [&key](const auto& field) { return field.first == bytes_of(key); };
  if (std::any_of(fields.begin(), fields.end(), is_this)) {
    return reply.record_fault(TOPOLET_DUPLICATE, fmt::format("{} {} is set twice", noun, sanitize_text(key)));
  }
  const placement::AddedFields& added = reply.adjustment.added;
  if (added.env.size() + added.annotations.size() >= TOPOLET_ADJUST_MAX_FIELDS) {
    return reply.record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("more than {} fields", TOPOLET_ADJUST_MAX_FIELDS));
  }
  fields.emplace_back(bytes_of(key), bytes_of(value));
  return TOPOLET_OK;
}

}  // namespace

std::int32_t SinkReply::record_fault(topolet_status status, std::string why) {
  if (fault.empty()) fault = std::move(why);
  return status;
}

std::int32_t SinkReply::set_error(topolet_str message) {
  if (call_abandoned) return TOPOLET_LATE;
  error = sanitize_text(message);
  return TOPOLET_OK;
}

std::int32_t ScoreReply::set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if (candidate >= verdicts.size()) {
    return record_fault(TOPOLET_UNKNOWN,
                        fmt::format("a verdict on candidate {}, but there are only {}", candidate, seen.size()));
  }
  if (seen[candidate]) return record_fault(TOPOLET_DUPLICATE, fmt::format("two verdicts on candidate {}", candidate));
  if (kind < TOPOLET_VERDICT_ABSTAIN || kind > TOPOLET_VERDICT_SCORE) {
    return record_fault(TOPOLET_INVALID, fmt::format("a verdict of unknown kind {} on candidate {}", kind, candidate));
  }
  if (kind == TOPOLET_VERDICT_SCORE && (score < TOPOLET_SCORE_MIN || score > TOPOLET_SCORE_MAX)) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("the score {} on candidate {} is not between -100 and 100", score, candidate));
  }
  if (reason.ptr == nullptr && reason.len != 0) return record_fault(TOPOLET_INVALID, "a reason is a null pointer");
  seen[candidate] = true;
  verdicts[candidate] = {static_cast<placement::Verdict::Kind>(kind), kind == TOPOLET_VERDICT_SCORE ? score : 0,
                         sanitize_text(reason)};
  return TOPOLET_OK;
}

std::int32_t ProposeReply::add(topolet_set nodes) {
  if (const std::int32_t status = check_set(*this, nodes, "a proposal", false); status != TOPOLET_OK) return status;
  if (proposals.size() >= TOPOLET_PROPOSE_MAX_SETS) {
    return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("more than {} proposals", TOPOLET_PROPOSE_MAX_SETS));
  }
  NodeSet proposal = to_set<NodeSet>(nodes);
  if (proposal.empty()) return record_fault(TOPOLET_INVALID, "a proposal has no nodes");
  proposals.push_back(std::move(proposal));
  return TOPOLET_OK;
}

std::int32_t PickReply::set_narrow(topolet_set cpus) {
  const std::int32_t status = check_set(*this, cpus, "narrow", pick.narrow.has_value());
  if (status == TOPOLET_OK) pick.narrow = to_set<CpuSet>(cpus);
  return status;
}

std::int32_t PickReply::set_withhold(topolet_set cpus) {
  const std::int32_t status = check_set(*this, cpus, "withhold", std::exchange(withheld, true));
  if (status == TOPOLET_OK) pick.withhold = to_set<CpuSet>(cpus);
  return status;
}

std::int32_t PickReply::set_order(const std::uint32_t* os_indices, std::size_t count) {
  if (call_abandoned) return TOPOLET_LATE;
  if (std::exchange(ordered, true)) return record_fault(TOPOLET_DUPLICATE, "order is set twice");
  if (os_indices == nullptr && count != 0) return record_fault(TOPOLET_INVALID, "order is a null pointer");
  if (count > kMaxOsIndex + 1) return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("order has {} CPUs", count));
  std::vector<bool> seen(kMaxOsIndex + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t cpu = os_indices[i];
    if (cpu > kMaxOsIndex) return record_fault(TOPOLET_OUT_OF_RANGE, fmt::format("order names CPU {}", cpu));
    if (seen[cpu]) return record_fault(TOPOLET_DUPLICATE, fmt::format("order names CPU {} twice", cpu));
    seen[cpu] = true;
  }
  pick.order.assign(os_indices, os_indices + count);
  return TOPOLET_OK;
}

std::int32_t PickReply::set_reason(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  pick.reason = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t PickReply::set_unmet(topolet_str what) {
  if (call_abandoned) return TOPOLET_LATE;
  if (what.ptr == nullptr || what.len == 0) return record_fault(TOPOLET_INVALID, "unmet has no text");
  pick.unmet = sanitize_text(what);
  return TOPOLET_OK;
}

std::int32_t PickReply::add_minimum(topolet_set cpus, std::uint32_t count) {
  const std::int32_t status = check_set(*this, cpus, "at_least", false);
  if (status != TOPOLET_OK) return status;
  if (pick.at_least.size() == TOPOLET_PICK_MAX_SHARES) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("at_least is set more than {} times", TOPOLET_PICK_MAX_SHARES));
  }
  pick.at_least.push_back({to_set<CpuSet>(cpus), count});
  return TOPOLET_OK;
}

std::int32_t PickReply::set_rejected(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if (reason.ptr == nullptr || reason.len == 0) return record_fault(TOPOLET_INVALID, "reject has no reason");
  if (!pick.rejected.empty()) return record_fault(TOPOLET_DUPLICATE, "reject is called twice");
  pick.rejected = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t AdjustReply::set_mems(topolet_set nodes) {
  const std::int32_t status = check_set(*this, nodes, "mems", adjustment.mems.has_value());
  if (status == TOPOLET_OK) adjustment.mems = to_set<NodeSet>(nodes);
  return status;
}

std::int32_t AdjustReply::add_env(topolet_str name, topolet_str value) {
  const auto has = [](topolet_str text, char byte) {
    return text.ptr != nullptr && bytes_of(text).find(byte) != std::string_view::npos;
  };
  if (!call_abandoned && (has(name, '=') || has(name, '\0') || has(value, '\0'))) {
    return record_fault(TOPOLET_INVALID,
                        fmt::format("variable {} has '=' in its name, or a zero byte", sanitize_text(name)));
  }
  return add_field(*this, adjustment.added.env, "variable", name, value);
}

std::int32_t AdjustReply::add_annotation(topolet_str key, topolet_str value) {
  return add_field(*this, adjustment.added.annotations, "annotation", key, value);
}

std::int32_t AdjustReply::set_reason(topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  adjustment.reason = sanitize_text(reason);
  return TOPOLET_OK;
}

std::int32_t AdjustReply::add_used_device(topolet_str device) {
  if (call_abandoned) return TOPOLET_LATE;
  if (device.ptr == nullptr || device.len == 0) return record_fault(TOPOLET_INVALID, "a used device has no name");
  std::vector<std::string>& used = adjustment.used_devices;
  if (device.len > TOPOLET_ADJUST_MAX_KEY || used.size() >= TOPOLET_ADJUST_MAX_DEVICES) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("more than {} used devices, or one of {} bytes; at most {}",
                                    TOPOLET_ADJUST_MAX_DEVICES, device.len, TOPOLET_ADJUST_MAX_KEY));
  }
  std::string name = sanitize_text(device);
  if (std::find(used.begin(), used.end(), name) != used.end())
    return record_fault(TOPOLET_DUPLICATE, fmt::format("device {} is used twice", name));
  used.push_back(std::move(name));
  return TOPOLET_OK;
}

std::int32_t TickReply::replace(std::uint32_t entry, std::uint32_t move_nodes, topolet_str reason) {
  if (call_abandoned) return TOPOLET_LATE;
  if (entry >= ledger.entries.size()) {
    return record_fault(TOPOLET_UNKNOWN,
                        fmt::format("a move of entry {}, but there are only {}", entry, ledger.entries.size()));
  }
  const placement::LedgerEntry& holder = ledger.entries[entry];
  if (holder.placement.mode == placement::Mode::kForeign) {
    return record_fault(TOPOLET_UNKNOWN, fmt::format("a move of entry {}, which topolet does not place", entry));
  }
  if (move_nodes > 1) return record_fault(TOPOLET_INVALID, fmt::format("move_nodes is {}, not 0 or 1", move_nodes));
  const auto is_this = [&holder](const MoveRequest& wish) { return wish.key == holder.key; };
  if (std::any_of(wishes.begin(), wishes.end(), is_this)) {
    return record_fault(TOPOLET_DUPLICATE, fmt::format("two moves of entry {}", entry));
  }
  wishes.push_back({plugin, holder.key, move_nodes == 1, sanitize_text(reason)});
  return TOPOLET_OK;
}

namespace {

template <class Reply, class Sink>
Reply& reply_of(const Sink* sink) {
  return *static_cast<Reply*>(sink->context);
}

}  // namespace

topolet_score_sink sink_into(ScoreReply& reply) {
  topolet_score_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.set = [](const topolet_score_sink* to, std::uint32_t candidate, std::int32_t kind, std::int32_t score,
                topolet_str reason) { return reply_of<ScoreReply>(to).set(candidate, kind, score, reason); };
  sink.error = [](const topolet_score_sink* to, topolet_str message) {
    return reply_of<ScoreReply>(to).set_error(message);
  };
  return sink;
}

topolet_propose_sink sink_into(ProposeReply& reply) {
  topolet_propose_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.nodes = [](const topolet_propose_sink* to, topolet_set nodes) { return reply_of<ProposeReply>(to).add(nodes); };
  sink.error = [](const topolet_propose_sink* to, topolet_str message) {
    return reply_of<ProposeReply>(to).set_error(message);
  };
  return sink;
}

topolet_pick_sink sink_into(PickReply& reply) {
  topolet_pick_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.narrow = [](const topolet_pick_sink* to, topolet_set cpus) { return reply_of<PickReply>(to).set_narrow(cpus); };
  sink.withhold = [](const topolet_pick_sink* to, topolet_set cpus) {
    return reply_of<PickReply>(to).set_withhold(cpus);
  };
  sink.order = [](const topolet_pick_sink* to, const std::uint32_t* os_indices, std::size_t count) {
    return reply_of<PickReply>(to).set_order(os_indices, count);
  };
  sink.reason = [](const topolet_pick_sink* to, topolet_str reason) {
    return reply_of<PickReply>(to).set_reason(reason);
  };
  sink.unmet = [](const topolet_pick_sink* to, topolet_str what) {
    return reply_of<PickReply>(to).set_unmet(what);  //
  };
  sink.at_least = [](const topolet_pick_sink* to, topolet_set cpus, std::uint32_t count) {
    return reply_of<PickReply>(to).add_minimum(cpus, count);
  };
  sink.reject = [](const topolet_pick_sink* to, topolet_str reason) {
    return reply_of<PickReply>(to).set_rejected(reason);
  };
  sink.error = [](const topolet_pick_sink* to, topolet_str message) {
    return reply_of<PickReply>(to).set_error(message);
  };
  return sink;
}

topolet_adjust_sink sink_into(AdjustReply& reply) {
  topolet_adjust_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.mems = [](const topolet_adjust_sink* to, topolet_set nodes) {
    return reply_of<AdjustReply>(to).set_mems(nodes);
  };
  sink.env = [](const topolet_adjust_sink* to, topolet_str name, topolet_str value) {
    return reply_of<AdjustReply>(to).add_env(name, value);
  };
  sink.annotation = [](const topolet_adjust_sink* to, topolet_str key, topolet_str value) {
    return reply_of<AdjustReply>(to).add_annotation(key, value);
  };
  sink.reason = [](const topolet_adjust_sink* to, topolet_str reason) {
    return reply_of<AdjustReply>(to).set_reason(reason);
  };
  sink.error = [](const topolet_adjust_sink* to, topolet_str message) {
    return reply_of<AdjustReply>(to).set_error(message);
  };
  sink.uses = [](const topolet_adjust_sink* to, topolet_str device) {
    return reply_of<AdjustReply>(to).add_used_device(device);
  };
  return sink;
}

topolet_event_sink sink_into(SinkReply& reply) {
  topolet_event_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.error = [](const topolet_event_sink* to, topolet_str message) {
    return reply_of<SinkReply>(to).set_error(message);
  };
  return sink;
}

topolet_tick_sink sink_into(TickReply& reply) {
  topolet_tick_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &reply;
  sink.replace = [](const topolet_tick_sink* to, std::uint32_t entry, std::uint32_t move_nodes, topolet_str reason) {
    return reply_of<TickReply>(to).replace(entry, move_nodes, reason);
  };
  sink.error = [](const topolet_tick_sink* to, topolet_str message) {
    return reply_of<TickReply>(to).set_error(message);
  };
  return sink;
}

}  // namespace topolet::plugin
