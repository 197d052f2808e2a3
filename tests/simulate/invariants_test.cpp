// Properties that must hold after every step, whatever happens to whichever machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/audit/history.hpp"
#include "core/audit/moves.hpp"
#include "core/placement/node_demand.hpp"
#include "store/database.hpp"
#include "store/retention.hpp"
#include "tests/simulate/late_writes.hpp"
#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

#ifdef TOPOLET_SANITIZED
constexpr int kSlower = 4;  // the other builds go the whole way
#else
constexpr int kSlower = 1;
#endif

struct Story {
  std::string machine;
  int steps = 0;
  std::vector<std::string> flags;
};

/// Makes up what happens next. The same seed on the same machine makes up the same.
class HistoryGenerator {
 public:
  HistoryGenerator(std::uint64_t seed, const topology::Topology& topology) : random_(seed), online_(topology.allowed) {
    for (const topology::Node& node : topology.nodes) {
      if (!node.memory_only) nodes_.push_back(node.os_index);
    }
  }

  /// Devices on some nodes: /dev/made0 and so on.
  std::vector<std::string> devices() {
    std::vector<std::string> lines;
    for (int i = 0; i < kDevices && !nodes_.empty(); ++i) {
      lines.push_back(fmt::format(R"({{"op":"device","path":"/dev/made{}","kind":"gpu","nodes":"{}"}})", i,
                                  nodes_[below(nodes_.size())]));
    }
    return lines;
  }

  std::vector<std::string> next() {
    switch (below(16)) {
      case 0:
        return {cpus_line("occupy", some_cpus())};
      case 1:
        return {cpus_line("vacate", some_cpus())};
      case 2:
        return {cpus_line("offline", some_cpus())};
      case 3:
        return {cpus_line("online", some_cpus())};
      case 4:
        return {R"({"op":"clock","advance_s":)" + std::to_string(below(400)) + "}"};
      case 5:
        return {fmt::format(R"({{"op":"runtime","next":"{}"}})", below(2) == 0 ? "refuse" : "lost")};
      case 6:
        return {about("stop", "")};
      case 7:
        return {about("exit", fmt::format(R"(,"exit_code":{})", below(2)))};
      case 8:
        return {fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", known_pod())};
      case 9:
        return {about("create", R"(,"cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":4096)")};
      case 10:
        return {about("update", fmt::format(R"(,"cpu_request_milli":{0},"cpu_limit_milli":{0})", 500 * below(9)))};
      default:
        return new_pod();
    }
  }

 private:
  static constexpr int kDevices = 4;

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  std::string known_pod() { return "p" + std::to_string(below(static_cast<std::uint64_t>(pods_) + 1)); }

  std::string about(const char* op, const std::string& more) {
    return fmt::format(R"({{"op":"{}","pod":"{}","container":"main"{}}})", op, known_pod(), more);
  }

  std::string cpus_line(const char* op, const CpuSet& cpus) {
    return fmt::format(R"({{"op":"{}","cpus":"{}"}})", op, cpus.to_string());
  }

  CpuSet some_cpus() {
    CpuSet some;
    const std::uint64_t skip = below(online_.size());
    std::uint64_t position = 0;
    for (const std::uint32_t cpu : online_) {
      if (position++ >= skip && some.size() <= below(4)) some.insert(cpu);
    }
    return some;
  }

  std::vector<std::string> new_pod() {
    const std::string pod = "p" + std::to_string(++pods_);
    const std::uint64_t kind = below(3);
    const char* const qos = kind == 0 ? "besteffort" : kind == 1 ? "burstable" : "guaranteed";
    const std::uint64_t milli = kind == 0       ? 0
                                : below(4) == 0 ? 250 * (1 + below(8))
                                                : 1000 * (1 + below(1 + online_.size() / 3));
    const std::string limit = kind == 2 ? fmt::format(R"(,"cpu_limit_milli":{},"memory_limit":4096)", milli) : "";
    return {
        fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"{}","annotations":{{{}}}}})", pod, qos, some_annotation()),
        fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{}{}{}}})", pod, milli, limit,
                    some_devices())};
  }

  std::string some_devices() {
    if (nodes_.empty() || below(3) > 0) return "";
    const std::uint64_t first = below(kDevices);
    if (below(2) == 0) return fmt::format(R"(,"devices":["/dev/made{}"])", first);
    return fmt::format(R"(,"devices":["/dev/made{}","/dev/made{}"])", first, (first + 1) % kDevices);
  }

  std::string some_annotation() {
    switch (below(8)) {
      case 0:
        return R"("topolet.io/smt":"isolate")";
      case 1:
        return R"("topolet.io/smt":"share","topolet.io/cpu-profile":"heavy")";
      case 2:
        return R"("topolet.io/cpu-profile":"heavy")";
      case 3:
        return R"("topolet.io/cpu-profile":"light")";
      case 4:
        return R"("topolet.io/cpu-profile":"heavy","topolet.io/smt":"isolate")";
      default:
        return "";
    }
  }

  std::mt19937_64 random_;
  const CpuSet online_;
  std::vector<std::uint32_t> nodes_;
  int pods_ = 0;
};

/// Expects that the promises to containers are kept.
void expect_promises_kept(const Snapshot& snapshot) {
  CpuSet alone;
  std::vector<placement::NodeDemand> sums(snapshot.topology->nodes.size());
  for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
    const placement::Placement& placement = entry.placement;
    const CpuSet own = (placement.mode == placement::Mode::kExclusive ? placement.cpus : CpuSet()) | placement.withheld;
    ASSERT_FALSE(own.intersects(alone)) << entry.key.pod_uid << " shares " << (own & alone).to_string();
    ASSERT_FALSE(own.intersects(snapshot.rules.occupied)) << entry.key.pod_uid;
    alone |= own;
    ASSERT_FALSE(placement.cpus.empty()) << entry.key.pod_uid << " is left without CPUs";
    placement::LedgerEntries only_this;
    only_this.push_back(entry);
    const std::vector<placement::NodeDemand> part = placement::demand_by_node(*snapshot.topology, only_this);
    for (std::size_t node = 0; node < sums.size(); ++node) {
      sums[node].containers += part[node].containers;
      sums[node].exclusive_cpus += part[node].exclusive_cpus;
      sums[node].cpu_request_milli += part[node].cpu_request_milli;
      sums[node].memory_request_bytes += part[node].memory_request_bytes;
    }
  }
  ASSERT_EQ(demand_by_node(*snapshot.topology, snapshot.ledger.entries), sums);
  for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
    if (entry.placement.mode == placement::Mode::kExclusive) continue;
    const CpuSet taken = entry.placement.cpus & alone;
    ASSERT_TRUE(taken.empty() || snapshot.ledger.pool.empty())
        << entry.key.pod_uid << " runs on " << taken.to_string() << ", which others hold";
  }
}

std::string written(const OperationResult& outcome) {
  std::string text = fmt::format("{} {} {} {} {} {}", outcome.outcome, outcome.mode, outcome.cpus.to_string(),
                                 outcome.withheld.to_string(), outcome.mems.to_string(), outcome.reason);
  for (const MovedContainer& moved : outcome.changed) text += fmt::format(" {}:{}", moved.pod, moved.cpus.to_string());
  return text + '\n';
}

/// All that came of a run.
std::string transcript(const Story& run, std::uint64_t seed, bool judge, const SimulationOptions& options = {}) {
  SimulatedNode node(run.machine, run.flags, options);
  HistoryGenerator chance(seed, *node.snapshot().topology);
  for (const std::string& line : chance.devices()) node.apply(line);
  std::string text;
  for (int step = 0; step < std::max(run.steps / kSlower, 10); ++step) {
    for (const std::string& line : chance.next()) {
      const std::size_t pool_before = judge ? node.snapshot().ledger.pool.size() : 0;
      const OperationResult outcome = node.apply(line);
      text += line + " -> " + written(outcome);
      if (!judge) continue;
      const Snapshot snapshot = node.snapshot();
      expect_promises_kept(snapshot);
      // Only what a container takes is topolet's doing.
      const bool took =
          outcome.outcome == "placed" && outcome.mode == "exclusive" && snapshot.ledger.pool.size() < pool_before;
      if (took) {
        EXPECT_GE(snapshot.ledger.pool.size(), 1U);
      }
      if (::testing::Test::HasFailure()) return text;
    }
  }
  return text;
}

std::vector<Story> runs() {
  const std::vector<std::string> numa = {"--plugins.enable=numa"};
  std::vector<Story> all = {{"numa:1 core:1 pu:1", 200, numa},
                            {"numa:1 core:3 pu:1", 300, {}},
                            {"pack:2 numa:1 core:4 pu:2", 400, {"--plugins.enable=numa", "--plugins.enable=smt"}},
                            {"pack:2 numa:2 core:4 pu:2", 300, {"--plugins.enable=numa", "--numa.strategy=spread"}},
                            {"pack:2 numa:1 core:4 pu:2",
                             400,
                             {"--plugins.enable=numa", "--plugins.enable=smt", "--smt.pair=true",
                              "--smt.isolate-siblings=exclusive", "--plugins.required.smt=true"}},
                            {"pack:2 numa:1 core:2 pu:8",
                             300,
                             {"--plugins.enable=smt", "--plugins.enable=numa", "--smt.pair=true",
                              "--numa.full-pcpus-only=true", "--placement.reserved-cpus=3"}},
                            {"numa:1 core:4 pu:4", 300, {"--plugins.enable=smt", "--smt.pair=true"}},
                            {"pack:2 numa:2 l3:2 core:2 pu:2",
                             300,
                             {"--plugins.enable=numa", "--plugins.enable=smt", "--placement.heal=all"}},
                            {"pack:4 numa:2 core:8 pu:2", 120, numa},
                            {"pack:24 numa:1 core:8 pu:2", 40, numa},
                            {"pack:8 numa:8 core:16 pu:2", 12, numa}};
  for (const char* name :
       {"16amd64-8n2c-cpusets.xml", "16em64t-4s2c2t.xml", "192em64t-24n8c2t.xml", "24em64t-2n6c2t-pci.xml",
        "64intel64-fakeKNL-SNC4-hybrid.xml", "nvidia-dgx2.xml", "power8gpudistances.xml"}) {
    all.push_back(
        {name, 30, {"--plugins.enable=numa", "--plugins.enable=gpu", "--plugins.enable=smt", "--placement.heal=all"}});
  }
  return all;
}

TEST(Invariants, HoldAfterEveryStepOnEveryMachine) {
  for (const Story& run : runs()) {
    for (const std::uint64_t seed : {1U, 2U}) {
      SCOPED_TRACE(fmt::format("{} seed {}", run.machine, seed));
      const std::string text = transcript(run, seed, true);
      if (HasFailure()) FAIL() << text.substr(text.size() > 3000 ? text.size() - 3000 : 0);
    }
  }
}

TEST(Invariants, HoldThoughWhatIsCommittedIsDurableLate) {
  for (const Story& run : runs()) {
    SCOPED_TRACE(run.machine);
    const std::string text = transcript(run, 3, true, with_late_writes(3));
    if (HasFailure()) FAIL() << text.substr(text.size() > 3000 ? text.size() - 3000 : 0);
  }
}

TEST(Invariants, HoldThoughNeighboursAreToldInAnswers) {
  for (const SimulatedFront front : {SimulatedFront::kInAnswer, SimulatedFront::kNri}) {
    for (const Story& run : runs()) {
      SCOPED_TRACE(run.machine + (front == SimulatedFront::kNri ? " over NRI" : ""));
      SimulationOptions options = with_late_writes(4);
      options.front = front;
      const std::string text = transcript(run, 4, true, options);
      if (HasFailure()) FAIL() << text.substr(text.size() > 3000 ? text.size() - 3000 : 0);
    }
  }
}

TEST(Invariants, TheRecordOfAHistoryIsDecidedAlikeAgain) {
  std::size_t decisions = 0;
  for (const Story& run : runs()) {
    for (const std::uint64_t seed : {1U, 3U}) {
      SCOPED_TRACE(fmt::format("{} seed {}", run.machine, seed));
      const RecordedRun recorded;
      transcript(run, seed, false, recorded.options(seed == 3 ? with_late_writes(3) : SimulationOptions()));
      const replay::ReplayResult result = recorded.replay();
      EXPECT_EQ(first_difference(result), "");
      decisions += result.decisions;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(decisions, 1000U / kSlower);
}

TEST(Invariants, ItChangesNothingThatAHistoryIsRecorded) {
  const Story run = runs()[4];
  const RecordedRun recorded;
  EXPECT_EQ(transcript(run, 7, false, recorded.options()), transcript(run, 7, false));
}

/// Where each container is, and what is kept idle for it.
struct Whereabouts {
  CpuSet cpus;
  CpuSet withheld;

  friend bool operator==(const Whereabouts&, const Whereabouts&) = default;
  friend void PrintTo(const Whereabouts& where, std::ostream* out) {
    *out << where.cpus.to_string() << " ~" << where.withheld.to_string();
  }
};
using Held = std::map<std::string, Whereabouts>;  // by pod, container, attempt and mode

/// As the engine itself tells.
Held held_now(SimulatedNode& node) {
  Held held;
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    const placement::Placement& placement = entry.placement;
    held[fmt::format("{}/{}/{} {}", entry.key.pod_uid, entry.key.name, entry.key.attempt, to_string(placement.mode))] =
        {placement.cpus, placement.withheld};
  }
  return held;
}

std::string name_of(const audit::Record& record) {
  return fmt::format("{}/{}/{} {}", record.pod_uid, record.container, record.attempt, to_string(record.mode));
}

Held held_at(const audit::History& history, std::chrono::milliseconds at) {
  Held held;
  const auto state = history.at(at.count());
  if (!state) throw std::runtime_error(state.error().message);
  for (const auto& [decision, record] : state->held()) {
    held[name_of(record)] = {state->cpus_of(record), state->withheld_of(record)};
  }
  return held;
}

/// Those that are on other CPUs than before, with where they are.
std::map<std::string, CpuSet> moved(const Held& before, const Held& after) {
  std::map<std::string, CpuSet> moved;
  for (const auto& [name, where] : after) {
    const auto was = before.find(name);
    if (was != before.end() && was->second.cpus != where.cpus) moved[name] = where.cpus;
  }
  return moved;
}

/// The same as the audit tells: of one that was moved several times, where it began and ended.
std::map<std::string, CpuSet> moved_between(const audit::History& history, std::chrono::milliseconds since,
                                            std::chrono::milliseconds until, const Held& before, const Held& after) {
  const auto moves = audit::moves_between(history, since.count(), until.count());
  if (!moves) throw std::runtime_error(moves.error().message);
  std::map<std::string, std::pair<CpuSet, CpuSet>> ways;
  for (const audit::Moved& move : *moves)
    ways.try_emplace(name_of(move.record), move.from, move.to).first->second.second = move.to;
  std::map<std::string, CpuSet> moved;
  for (const auto& [name, way] : ways) {
    const bool is_in_both = before.count(name) != 0 && after.count(name) != 0;
    if (is_in_both && way.first != way.second) moved[name] = way.second;
  }
  return moved;
}

using Moments = std::map<std::chrono::milliseconds, std::pair<std::string, Held>>;

/// Returns how many containers were told of.
std::size_t expect_told(const audit::History& history, const Moments& moments, Moments::const_iterator first) {
  std::size_t told = 0;
  for (auto moment = first; moment != moments.end(); ++moment) {
    const auto& [line, held] = moment->second;
    SCOPED_TRACE(fmt::format("at {} after {}", moment->first.count(), line));
    EXPECT_EQ(held_at(history, moment->first), held);
    if (moment != first) {
      const auto& [at, before] = *std::prev(moment);
      EXPECT_EQ(moved_between(history, at, moment->first, before.second, held), moved(before.second, held));
    }
    if (::testing::Test::HasFailure()) return told;
    told += held.size();
  }
  return told;
}

std::int64_t delete_until(store::Database& database, std::int64_t mark_ms) {
  std::int64_t all = 0;
  while (true) {
    const auto deleted = store::prune_slice(database, mark_ms, 7);
    if (!deleted) throw std::runtime_error(deleted.error().message);
    if (*deleted == 0) return all;
    all += *deleted;
  }
}

TEST(Invariants, TheAuditTellsWhatWasHeldAtEveryMoment) {
  std::size_t told = 0;
  std::int64_t deleted = 0;
  for (const Story& run : runs()) {
    SCOPED_TRACE(run.machine);
    const TempDir directory;
    Moments recorded;
    {
      SimulatedNode node(run.machine, run.flags, {.state_dir = directory.path() / "state"});
      HistoryGenerator chance(3, *node.snapshot().topology);
      for (const std::string& line : chance.devices()) node.apply(line);
      for (int step = 0; step < std::max(run.steps / kSlower, 10); ++step) {
        for (const std::string& line : chance.next()) {
          node.apply(line);
          recorded[node.now()] = {line, held_now(node)};
          node.apply(R"({"op":"clock","advance_s":1})");
        }
      }
    }
    auto database = store::Database::open(directory.path() / "state" / "state.db", store::Database::Access::kReadWrite);
    ASSERT_TRUE(database.has_value());
    ASSERT_TRUE(database->execute("PRAGMA foreign_keys = ON", "delete").has_value());
    const audit::History history(*database);
    told += expect_told(history, recorded, recorded.begin());
    // Nobody who asks for later moments misses the rows that are deleted.
    for (const std::size_t third : {1U, 2U}) {
      const auto mark = std::next(recorded.begin(), static_cast<std::ptrdiff_t>(recorded.size() * third / 3));
      SCOPED_TRACE(fmt::format("deleted until {}", mark->first.count()));
      deleted += delete_until(*database, mark->first.count());
      expect_told(history, recorded, mark);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(deleted, 100);
  EXPECT_GT(told, 100U);
}

TEST(Invariants, TheSameSeedGivesTheSameBytes) {
  for (Story run : runs()) {
    run.steps /= 2;
    EXPECT_EQ(transcript(run, 7, false), transcript(run, 7, false)) << run.machine;
  }
}

TEST(Invariants, TheOrderOfEnableLinesChangesNothing) {
  const std::vector<std::string> machines = {"pack:2 numa:2 core:4 pu:2", "pack:2 numa:1 core:3 pu:4",
                                             "16em64t-4s2c2t.xml",        "64intel64-fakeKNL-SNC4-hybrid.xml",
                                             "nvidia-dgx2.xml",           "power8gpudistances.xml"};
  const std::vector<std::vector<std::string>> settings = {
      {"--smt.pair=true"},
      {"--smt.isolate-siblings=exclusive", "--numa.strategy=spread"},
      {"--smt.isolate-siblings=exclusive", "--gpu.affinity=require", "--plugins.weight.gpu=1"},
      {"--smt.pair=true", "--gpu.affinity=require", "--gpu.keep-free=true", "--plugins.required.gpu=true"},
      {"--numa.full-pcpus-only=true", "--numa.policy=none"},
      {"--numa.full-pcpus-only=true", "--smt.pair=true", "--numa.distribute-cpus-across-numa=true"}};
  std::string said;
  for (const std::string& machine : machines) {
    for (const std::vector<std::string>& flags : settings) {
      SCOPED_TRACE(fmt::format("{} {}", machine, fmt::join(flags, " ")));
      std::vector<std::string> plugins = {"gpu", "numa", "smt"};
      std::set<std::string> transcripts;
      do {
        // With the sanitizers, the first order and the last.
        if (kSlower > 1 && plugins[1] != "numa") continue;
        Story run{machine, 25, flags};
        for (const std::string& plugin : plugins) run.flags.push_back("--plugins.enable=" + plugin);
        transcripts.insert(transcript(run, 3, true));
      } while (std::next_permutation(plugins.begin(), plugins.end()));
      EXPECT_EQ(transcripts.size(), 1U);
      said += *transcripts.begin();
    }
  }
  // Short histories say less.
  for (const char* word : {" is local", "numa: ", "kept idle", "heavy container"}) {
    EXPECT_TRUE(kSlower > 1 || said.find(word) != std::string::npos) << word;
  }
}

TEST(Invariants, AReleaseRestoresTheStateBefore) {
  for (const Story& run : runs()) {
    SCOPED_TRACE(run.machine);
    SimulatedNode node(run.machine, run.flags);
    node.besteffort("b");
    node.guaranteed("g", 1);
    const placement::LedgerSnapshot before = node.snapshot().ledger;
    const OperationResult outcome = node.guaranteed("new", 2);
    node.apply(R"({"op":"remove_pod","pod":"new"})");
    const placement::LedgerSnapshot after = node.snapshot().ledger;
    EXPECT_EQ(after.pool, before.pool);
    EXPECT_EQ(after.exclusive, before.exclusive);
    EXPECT_EQ(after.withheld, before.withheld);
    ASSERT_EQ(after.entries.size(), before.entries.size());
    for (std::size_t i = 0; i < after.entries.size(); ++i) {
      EXPECT_EQ(after.entries[i].key, before.entries[i].key);
      EXPECT_EQ(after.entries[i].placement, before.entries[i].placement);
    }
  }
}

}  // namespace
}  // namespace topolet::simulate
