// Named pools: the containers of pods that say topolet.io/pool = NAME share as many CPUs as they request together, and
// no two pools have a CPU in common.
#include <topolet/policy.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace topolet::sdk;

constexpr std::string_view kSetting = "pool";

// What the ledger says of one pool.
struct Pool {
  Set cpus;                        // of its containers
  Set others;                      // of other pools
  std::int64_t request_milli = 0;  // of its containers

  std::size_t size() const { return static_cast<std::size_t>(std::max<std::int64_t>((request_milli + 999) / 1000, 1)); }
};

Pool pool_in(const topolet_ledger& ledger, std::string_view name) {
  Pool pool;
  for (const topolet_ledger_entry& entry : entries(ledger)) {
    const std::string_view its = value_of(entry.settings, kSetting);
    if (its.empty() || entry.mode != TOPOLET_MODE_SHARED) continue;
    if (its != name) {
      pool.others |= entry.cpus;
      continue;
    }
    pool.cpus |= entry.cpus;
    pool.request_milli += entry.demand->cpu_request_milli;
  }
  return pool;
}

// The CPUs that the pool is to have of those that are `usable`: first those that it has, then the lowest that no other
// pool has. The same for each of its containers, whoever asks.
Set cpus_for(const Pool& pool, topolet_set usable) {
  Set free(usable);
  free -= pool.others;
  Set chosen;
  const auto take = [&](std::uint32_t cpu) {
    if (chosen.size() < pool.size()) chosen.insert(cpu);
  };
  for (const std::uint32_t cpu : pool.cpus.indices()) {
    if (free.has(cpu)) take(cpu);
  }
  for (const std::uint32_t cpu : free.indices()) take(cpu);
  return chosen;
}

// The CPUs of all nodes that the pool has CPUs of: it does not leave them.
Set near(const topolet_topology& topology, const Set& cpus) {
  Set all;
  for (const topolet_node& node : nodes(topology)) {
    if (node.memory_only == 0 && size_of_both(node.cpus, cpus.view()) > 0) all |= node.cpus;
  }
  return all;
}

class Pools {
 public:
  static constexpr std::array<topolet_str, 1> kAnnotations = {{TOPOLET_STR("pool")}};
  static constexpr std::array<topolet_kv, 2> kCodes = {
      {{TOPOLET_STR("elsewhere"), TOPOLET_STR("The pool has its CPUs elsewhere.")},
       {TOPOLET_STR("no-room"), TOPOLET_STR("The pool needs more CPUs than there are in this place.")}}};

  explicit Pools(const Options& options)
      : interval_ms_(static_cast<std::uint32_t>(std::stoul(std::string(options["interval-ms"])))) {}

  // A pool stays where it is; a new one goes where it has room.
  void score(const topolet_request& request, Scores& scores) const {
    const std::string_view name = value_of(request.workload->settings, kSetting);
    if (name.empty() || request.exclusive != 0) return;
    const Pool pool = pool_with(request, name);
    for (std::size_t i = 0; i < candidates(request).size(); ++i) {
      const topolet_set usable = candidates(request)[i].usable;
      const bool has_it = size_of_both(pool.cpus.view(), usable) == pool.cpus.size();
      const bool has_room = cpus_for(pool, usable).size() >= pool.size();
      scores.score(i, has_it && has_room ? 50 : 0,
                   pool_name(name) + " needs " + counted(pool.size(), "CPU") +
                       (has_room ? "" : ", more than there are here") +
                       (has_it ? "" : ", and is elsewhere, on " + cpu_names(pool.cpus)));
      if (!has_room || !has_it) scores.code(i, has_room ? "elsewhere" : "no-room");
    }
  }

  // The newcomer is narrowed to the pool that it makes grow, and the others get the same CPUs together with it.
  void pick(const topolet_pick_request& asked, Picks& picks) const {
    const topolet_request& request = *asked.request;
    const std::string_view name = value_of(request.workload->settings, kSetting);
    if (name.empty() || request.exclusive != 0) return;
    if (asked.stage == TOPOLET_PICK_REVIEW) return take_along(*request.ledger, name, asked.chosen, picks);
    const Set chosen = cpus_for(pool_with(request, name), asked.usable);
    if (asked.stage != TOPOLET_PICK_CHOOSE || chosen.empty()) return;
    picks.narrow(chosen.view());
    picks.reason(pool_name(name) + " has " + cpu_names(chosen));
  }

  std::uint32_t interval_ms() const { return interval_ms_; }

  // The others follow when a container has gone and the pool has shrunk.
  void tick(const topolet_tick_request& request, Wishes& wishes) const {
    for (std::size_t i = 0; i < entries(*request.ledger).size(); ++i) {
      const topolet_ledger_entry& entry = entries(*request.ledger)[i];
      const std::string_view name = value_of(entry.settings, kSetting);
      if (name.empty() || entry.mode != TOPOLET_MODE_SHARED) continue;
      const Pool pool = pool_in(*request.ledger, name);
      Set usable = near(*request.topology, pool.cpus);
      usable &= request.ledger->pool;
      const Set wanted = cpus_for(pool, usable.view());
      if (!(Set(entry.cpus) == wanted)) wishes.replace(i, 0, pool_name(name) + " has " + cpu_names(wanted) + " now");
    }
  }

 private:
  static void take_along(const topolet_ledger& ledger, std::string_view name, topolet_set cpus, Picks& picks) {
    for (std::size_t i = 0; i < entries(ledger).size(); ++i) {
      const topolet_ledger_entry& entry = entries(ledger)[i];
      const bool is_in_it = value_of(entry.settings, kSetting) == name && entry.mode == TOPOLET_MODE_SHARED;
      if (!is_in_it || Set(entry.cpus) == Set(cpus)) continue;
      picks.replace(i, 0, pool_name(name) + " has " + cpu_names(Set(cpus)) + " now");
    }
  }

  static std::string pool_name(std::string_view name) { return "pool '" + printable(name) + "'"; }

  // The ledger has all containers but the one that is being placed.
  static Pool pool_with(const topolet_request& request, std::string_view name) {
    Pool pool = pool_in(*request.ledger, name);
    pool.cpus |= request.had_cpus;
    pool.request_milli += request.workload->demand->cpu_request_milli;
    return pool;
  }

  std::uint32_t interval_ms_;
};

constexpr std::array<topolet_option, 1> kOptions = {{
    integer_option("interval-ms", "1000", TOPOLET_TICK_MIN_MS, 60000,
                   "How often pools that have changed are followed."),
}};

}  // namespace

TOPOLET_PLUGIN(Pools, "pools", "1.0", kOptions);
