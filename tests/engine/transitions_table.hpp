// Ledger × event → what changes, a row an event. transition_text.hpp says how a change is written. The ledgers have
// CPUs 0-7; it is 1000 ms, and all that they hold has been so since 1 ms.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/engine/state/transitions.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/engine/transition_text.hpp"

namespace topolet::engine {

struct Row {
  std::string what;
  std::vector<Allocation> given;
  Event event;
  std::vector<std::string> changes;
  std::vector<Pod> pods = {};
  placement::PlacementRules rules = {};
  CpuInventory cpus = kEightCpus;
};

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.what; }

inline void expect_just_those_changes(const Row& row) {
  const Ledger ledger = ledger_of(row.given, row.pods, row.cpus);
  const Transition made = compute_transition(ledger, row.rules, std::chrono::milliseconds(1000), row.event);
  EXPECT_THAT(describe(made), ::testing::ElementsAreArray(row.changes));
  EXPECT_EQ(made.wall_time, std::chrono::milliseconds(1000));
  EXPECT_EQ(made.is_nothing(), row.changes.empty());
}

inline std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  std::string name;
  bool begins = true;
  for (const char letter : info.param.what) {
    const bool is_letter = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (is_letter) name += begins ? static_cast<char>(std::toupper(letter)) : letter;
    begins = !is_letter;
  }
  return name;
}

inline placement::ContainerKey key_of(const std::string& name) { return besteffort(name).key; }

inline placement::Workload attempt(placement::Workload workload, std::uint32_t number) {
  workload.key.attempt = number;
  return workload;
}

inline Allocation changed(Allocation allocation, const std::function<void(Allocation&)>& change) {
  change(allocation);
  return allocation;
}

inline Allocation in_doubt_since(Allocation allocation, int since) {
  allocation.doubt_since = std::chrono::milliseconds(since);
  return allocation;
}

/// `b` shares node 0 of two, and has CPUs 4-7 as they are.
inline Allocation displaced(bool waits_for_all = false) {
  Allocation allocation = shared("b", Phase::kRunning, CpuSet::range(4, 7));
  allocation.preferred = Preferred{{}, CpuSet::range(0, 3), NodeSet{0}, waits_for_all};
  return allocation;
}

/// The same, and it asks for so much.
inline Allocation displaced_asking(std::int64_t milli) {
  Allocation allocation = displaced();
  allocation.workload.demand.cpu_request_milli = milli;
  return allocation;
}

inline Plan with(Plan plan, const std::function<void(Plan&)>& change) {
  change(plan);
  return plan;
}

inline Plan moving_b_away(Plan plan) {
  plan.moves.push_back({besteffort("b"), shared_on(CpuSet::range(4, 7), CpuSet::range(4, 7)).decision,
                        Preferred{{}, CpuSet::range(0, 3), NodeSet{0}, false}});
  return plan;
}

inline operations::ContainerInfo found(const std::string& id, operations::ContainerState state) {
  operations::ContainerInfo info;
  info.id = id;
  info.state = state;
  return info;
}

inline placement::Decision denied(const std::string& reason) {
  placement::Decision decision;
  decision.denied = true;
  decision.reason = reason;
  return decision;
}

inline placement::PlacementRules without_crash_hold() {
  placement::PlacementRules rules;
  rules.crash_hold = {};
  return rules;
}

inline placement::Demand half_a_cpu() {
  placement::Demand demand;
  demand.cpu_request_milli = 500;
  return demand;
}

inline const CallError kRefused{Code::kInvalidArgument, "no"};
inline const CallError kLost{Code::kUnavailable, "gone"};

}  // namespace topolet::engine
