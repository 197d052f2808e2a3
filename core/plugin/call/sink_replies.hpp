// The replies that a plugin writes into the sink of a call: copied, and checked as far as possible without the ledger.
#pragma once

#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin/call/container_event.hpp"

namespace topolet::plugin {

/// The common part of the replies of all calls: the first mistake, and whether the call was abandoned.
struct SinkReply {
  const std::atomic<bool>& call_abandoned;
  std::string fault = {};
  std::string error = {};

  std::int32_t record_fault(topolet_status status, std::string why);
  std::int32_t set_error(topolet_str message);
  /// Only makes sure that the set can be read; whether its indices exist is for others to judge.
  std::int32_t check_set(topolet_set set, const char* what, bool already_set);
};

/// The codes that a plugin has for its reasons.
struct ReasonCodes {
  std::string plugin;
  std::vector<std::string> codes;

  bool has(std::string_view code) const { return std::find(codes.begin(), codes.end(), code) != codes.end(); }
  /// "ID/CODE"
  std::string shown(std::string_view code) const { return plugin + '/' + std::string(code); }
};

struct ScoreReply : SinkReply {
  std::vector<placement::Verdict> verdicts;
  std::vector<bool> seen;
  const ReasonCodes& known;

  /// The verdicts as they are to be told: reasons end with their codes.
  std::vector<placement::Verdict> take();

  std::int32_t set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason);
  std::int32_t set_code(std::uint32_t candidate, topolet_str code);
};

struct ProposeReply : SinkReply {
  std::vector<NodeSet> proposals = {};

  std::int32_t add(topolet_set nodes);
};

struct PickReply : SinkReply {
  const ReasonCodes& known;
  const placement::LedgerSnapshot& ledger;
  placement::Pick pick = {};
  bool withheld = false;
  bool ordered = false;

  std::int32_t set_narrow(topolet_set cpus);
  std::int32_t set_withhold(topolet_set cpus);
  std::int32_t set_order(const std::uint32_t* os_indices, std::size_t count);
  std::int32_t set_reason(topolet_str reason);
  std::int32_t set_unmet(topolet_str what);
  std::int32_t add_minimum(topolet_set cpus, std::uint32_t count);
  std::int32_t set_rejected(topolet_str reason);
  std::int32_t set_code(topolet_str code);
  std::int32_t add_replacement(std::uint32_t entry, std::uint32_t flags, topolet_str reason);
  std::int32_t soften();

  /// The pick as it is to be told: reasons end with its code.
  placement::Pick take();
};

struct AdjustReply : SinkReply {
  const std::string& plugin;
  const placement::PolicyRequest& request;
  placement::Adjustment adjustment = {};
  std::string unusable_rdt_class = {};              ///< that was asked for
  std::vector<std::string> unusable_settings = {};  ///< that were asked for, for people: such as "a scheduler class"

  std::int32_t set_mems(topolet_set nodes);
  std::int32_t add_env(topolet_str name, topolet_str value);
  std::int32_t add_annotation(topolet_str key, topolet_str value);
  std::int32_t set_reason(topolet_str reason);
  std::int32_t add_used_device(topolet_str device);
  std::int32_t add_tag(topolet_str key, topolet_str value);
  std::int32_t add_file(topolet_str key, topolet_str value);
  std::int32_t set_rdt_class(topolet_str name);
  std::int32_t set_memory_policy(std::int32_t mode, topolet_set nodes, std::uint32_t flags);
  std::int32_t set_scheduler(std::int32_t scheduler_class, std::int32_t nice);
  std::int32_t set_io_priority(std::int32_t io_class, std::int32_t priority);

 private:
  std::int32_t leave_unset(std::string setting);
};

/// The reason that create() gives when it fails.
struct CreateReply : SinkReply {};

struct TickReply : SinkReply {
  const std::string& plugin;
  const placement::LedgerSnapshot& ledger;
  TickAnswer answer = {};

  std::int32_t replace(std::uint32_t entry, std::uint32_t flags, topolet_str reason);

 private:
  std::int32_t refuse(topolet_status status, std::string why);
};

/// While it lives, what this thread's plugin says to a sink of this kind goes into the reply.
template <class Reply>
class ReplyScope {
 public:
  explicit ReplyScope(Reply& reply);
  ~ReplyScope();
  ReplyScope(const ReplyScope&) = delete;
  ReplyScope& operator=(const ReplyScope&) = delete;

 private:
  SinkReply* outer_reply_;
  const void* outer_type_;
};

/// The sinks of all calls. Their functions do something on a thread inside of a ReplyScope of their kind only, and
/// return TOPOLET_LATE anywhere else, as long as the process lives.
struct Sinks {
  topolet_score_sink score;
  topolet_propose_sink propose;
  topolet_pick_sink pick;
  topolet_adjust_sink adjust;
  topolet_event_sink event;
  topolet_tick_sink tick;
  topolet_error_sink create;

  // The sink of the call that fills such a reply.
  const topolet_score_sink* of(const ScoreReply& /*reply*/) const { return &score; }
  const topolet_propose_sink* of(const ProposeReply& /*reply*/) const { return &propose; }
  const topolet_pick_sink* of(const PickReply& /*reply*/) const { return &pick; }
  const topolet_adjust_sink* of(const AdjustReply& /*reply*/) const { return &adjust; }
  const topolet_event_sink* of(const SinkReply& /*reply*/) const { return &event; }
  const topolet_tick_sink* of(const TickReply& /*reply*/) const { return &tick; }
  const topolet_error_sink* of(const CreateReply& /*reply*/) const { return &create; }
};
Sinks make_sinks();

}  // namespace topolet::plugin
