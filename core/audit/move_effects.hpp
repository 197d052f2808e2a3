// What a container gained by running elsewhere, and what that has cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "core/audit/record.hpp"
#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

/// How far apart CPUs are. CPUs that belong to no node or cache count for none.
struct Spread {
  std::size_t nodes = 0;
  std::size_t l3s = 0;  ///< last-level caches; 0 where the machine tells of none
  /// CPUs on none of the nodes of the devices that the container's request names; none where it names none, or none
  /// whose node is known.
  std::optional<std::size_t> remote_cpus;

  friend bool operator==(const Spread&, const Spread&) = default;
};

struct MoveEffects {
  Spread before;
  Spread after;
  std::size_t moved_cpus = 0;  ///< those that it did not have before
  /// Its memory on the nodes that it has left, and that stays there, as it was measured; where it was not, what is
  /// booked for it there. None where nobody tells how much memory it requests, either.
  std::optional<std::int64_t> memory_left_bytes;
};

/// How much memory a decision left behind, as topoletd noted it.
struct NotedMemory {
  std::optional<std::int64_t> bytes;  ///< none: it was not measured
  bool follows = false;               ///< the kernel takes it along
};
Result<NotedMemory> noted_memory_of(const store::Database& database, std::int64_t decision);

/// The nodes and caches of all CPUs that the machine had from one time to another.
class Localities {
 public:
  static Result<Localities> between(const store::Database& database, std::int64_t since_ms, std::int64_t until_ms);

  /// Of a container that has moved from one set to another, as it is from then on. `memory`: of the decision that moved
  /// it.
  MoveEffects effects(const Record& record, const CpuSet& from, const CpuSet& to, const NodeSet& device_nodes,
                      const NotedMemory& memory = {}) const;

 private:
  struct Locality {
    std::optional<std::uint32_t> node;
    std::optional<std::uint32_t> l3;
  };

  NodeSet nodes_of(const CpuSet& cpus) const;
  Spread spread(const CpuSet& cpus, const NodeSet& device_nodes) const;

  std::map<std::uint32_t, Locality> by_cpu_;
};

/// The nodes of the devices that the request of a decision names, as far as they are known.
Result<NodeSet> device_nodes_of(const store::Database& database, std::int64_t decision);

}  // namespace topolet::audit
