// What plugins say into the sinks of a call: copied, and checked as far as it can be without the ledger.
#pragma once

#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin/happenings.hpp"

namespace topolet {

/// What all sinks of one call have in common: the first wrong answer, and whether anybody still waits for it.
struct Answer {
  const std::atomic<bool>& given_up;
  std::string fault = {};
  std::string error = {};

  std::int32_t wrong(topolet_status status, std::string why);
  std::int32_t set_error(topolet_str message);
};

struct ScoreAnswer : Answer {
  std::vector<Verdict> verdicts;
  std::vector<bool> seen;

  std::int32_t set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason);
};

struct ProposeAnswer : Answer {
  std::vector<NodeSet> proposals = {};

  std::int32_t add(topolet_set nodes);
};

struct PickAnswer : Answer {
  Pick pick = {};
  bool withheld = false;
  bool ordered = false;

  std::int32_t set_narrow(topolet_set cpus);
  std::int32_t set_withhold(topolet_set cpus);
  std::int32_t set_order(const std::uint32_t* os_indices, std::size_t count);
  std::int32_t set_reason(topolet_str reason);
  std::int32_t set_unmet(topolet_str what);
  std::int32_t add_share(topolet_set cpus, std::uint32_t count);
  std::int32_t set_rejected(topolet_str reason);
};

struct AdjustAnswer : Answer {
  Adjustment adjustment = {};

  std::int32_t set_mems(topolet_set nodes);
  std::int32_t add_env(topolet_str name, topolet_str value);
  std::int32_t add_annotation(topolet_str key, topolet_str value);
  std::int32_t set_reason(topolet_str reason);
};

struct TickAnswer : Answer {
  const std::string& plugin;
  const LedgerView& ledger;
  std::vector<ReplacementWish> wishes = {};

  std::int32_t replace(std::uint32_t entry, std::uint32_t move_nodes, topolet_str reason);
};

// Sinks that write into an answer, which must outlive them.
topolet_score_sink sink_into(ScoreAnswer& answer);
topolet_propose_sink sink_into(ProposeAnswer& answer);
topolet_pick_sink sink_into(PickAnswer& answer);
topolet_adjust_sink sink_into(AdjustAnswer& answer);
topolet_event_sink sink_into(Answer& answer);
topolet_tick_sink sink_into(TickAnswer& answer);

}  // namespace topolet
