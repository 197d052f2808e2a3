#include "plugins/load/measured.hpp"

#include <cstddef>

namespace topolet::load_policy {
namespace {

bool is_recent(std::int64_t value, std::int64_t age_ms) { return value >= 0 && age_ms >= 0 && age_ms <= kOldestMs; }

/// Nothing before 1.0 is without it, but a host may be older.
std::int64_t measured_ms(const topolet_load& load) { return TOPOLET_HAS(&load, measured_ms) ? load.measured_ms : -1; }

}  // namespace

Measured::Measured(const topolet_load* load, const topolet_topology& topology, const topolet_ledger& ledger)
    : load_(load), node_count_(topology.node_count), entry_count_(ledger.entry_count) {
  const Ages known = load == nullptr ? Ages() : ages();
  if (!known.any) {
    why_not_ = "no load is measured";
  } else if (const std::int64_t lasts = measured_ms(*load); lasts >= 0 && lasts < kLeastMeasuredMs) {
    why_not_ = "load has been measured for " + std::to_string(lasts / 1000) + " s only, of " +
               std::to_string(kLeastMeasuredMs / 1000) + " that it takes";
  } else if (!known.any_recent) {
    why_not_ = "the measured load is older than " + std::to_string(kOldestMs / 1000) + " s";
  }
  if (!why_not_.empty()) load_ = nullptr;
}

Measured::Ages Measured::ages() const {
  Ages found;
  const auto add = [&found](std::int64_t value, std::int64_t age_ms) {
    found.any = found.any || value >= 0;
    found.any_recent = found.any_recent || is_recent(value, age_ms);
  };
  if (load_->nodes != nullptr) {
    for (std::size_t i = 0; i < node_count_; ++i) {
      const auto& node = *TOPOLET_AT(topolet_node_load, load_->nodes, load_->node_stride, i);
      add(node.effective_milli, node.age_ms);
    }
  }
  if (load_->entries != nullptr) {
    for (std::size_t i = 0; i < entry_count_; ++i) {
      const auto& entry = *TOPOLET_AT(topolet_entry_load, load_->entries, load_->entry_stride, i);
      add(entry.cpu_milli, entry.age_ms);
    }
  }
  return found;
}

std::optional<std::int64_t> Measured::used_milli(std::size_t entry) const {
  if (load_ == nullptr || load_->entries == nullptr || entry >= entry_count_) return std::nullopt;
  const auto& known = *TOPOLET_AT(topolet_entry_load, load_->entries, load_->entry_stride, entry);
  return is_recent(known.cpu_milli, known.age_ms) ? std::optional(known.cpu_milli) : std::nullopt;
}

std::optional<std::int64_t> Measured::waits_permille(std::size_t entry) const {
  if (load_ == nullptr || load_->entries == nullptr || entry >= entry_count_) return std::nullopt;
  const auto& known = *TOPOLET_AT(topolet_entry_load, load_->entries, load_->entry_stride, entry);
  if (!is_recent(known.psi_some_permille, known.age_ms)) return std::nullopt;
  return known.psi_some_permille;
}

std::optional<std::int64_t> Measured::effective_milli(std::size_t node) const {
  if (load_ == nullptr || load_->nodes == nullptr || node >= node_count_) return std::nullopt;
  const auto& known = *TOPOLET_AT(topolet_node_load, load_->nodes, load_->node_stride, node);
  return is_recent(known.effective_milli, known.age_ms) ? std::optional(known.effective_milli) : std::nullopt;
}

/// Nothing before 1.0 is without it, but a host may be older.
std::optional<std::int64_t> Measured::used_of_node_milli(std::size_t node) const {
  if (load_ == nullptr || load_->nodes == nullptr || node >= node_count_) return std::nullopt;
  constexpr std::size_t kWithUsed = offsetof(topolet_node_load, used_milli) + sizeof(topolet_node_load::used_milli);
  if (load_->node_stride < kWithUsed) return std::nullopt;
  const auto& known = *TOPOLET_AT(topolet_node_load, load_->nodes, load_->node_stride, node);
  return is_recent(known.used_milli, known.age_ms) ? std::optional(known.used_milli) : std::nullopt;
}

}  // namespace topolet::load_policy
