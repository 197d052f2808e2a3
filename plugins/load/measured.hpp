// What is measured and recent enough to go by. What is not known is not zero.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace topolet::load_policy {

/// A value that is older says nothing about now.
constexpr std::int64_t kOldestMs = 5000;
/// Averages of less are of chance.
constexpr std::int64_t kLeastMeasuredMs = 60000;

/// The measured load of a ledger and its machine. Borrows all of it.
class Measured {
 public:
  /// `load` may be null.
  Measured(const topolet_load* load, const topolet_topology& topology, const topolet_ledger& ledger);

  /// Why nothing can be said of any container or node, for people; empty if something can.
  const std::string& why_not() const { return why_not_; }
  /// CPU time of a container in thousandths of a CPU, by its position in the ledger; nothing if that is not known.
  std::optional<std::int64_t> used_milli(std::size_t entry) const;
  /// The part of the time, in permille, in which a task of a container waited for a CPU that its own quota did not keep
  /// from it; nothing if that is not known.
  std::optional<std::int64_t> waits_permille(std::size_t entry) const;
  /// What all online CPUs of a node can do, in thousandths of a CPU, by its position in the topology; nothing if that
  /// is not known.
  std::optional<std::int64_t> effective_milli(std::size_t node) const;
  /// How much of the CPUs of a node is used, by whomever, in thousandths of a CPU; nothing if that is not known.
  std::optional<std::int64_t> used_of_node_milli(std::size_t node) const;

 private:
  struct Ages {
    bool any_recent = false;
    bool any = false;
  };
  Ages ages() const;

  const topolet_load* load_;
  std::size_t node_count_;
  std::size_t entry_count_;
  std::string why_not_;
};

}  // namespace topolet::load_policy
