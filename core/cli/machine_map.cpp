#include "core/cli/machine_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace topolet::cli {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr char kManyMore = '*';

/// A sign for every CPU.
class CpuSymbols {
 public:
  explicit CpuSymbols(const simulate::Snapshot& snapshot) : picture_(snapshot) {
    for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
      const placement::Placement& placement = entry.placement;
      if (placement.mode != placement::Mode::kExclusive && placement.withheld.empty()) continue;
      const char letter = holders_.size() < kLetters.size() ? kLetters[holders_.size()] : kManyMore;
      holders_.emplace_back(letter, &entry);
      if (placement.mode == placement::Mode::kExclusive) {
        for (const std::uint32_t cpu : placement.cpus) held_[cpu] = letter;
      }
    }
  }

  char of(std::uint32_t cpu) const {
    const engine::CpuInventory& rules = picture_.rules;
    if (const auto held = held_.find(cpu); held != held_.end()) return held->second;
    if (picture_.ledger.withheld.contains(cpu)) return '~';
    if (rules.occupied.contains(cpu)) return 'o';
    if (!rules.allowed.contains(cpu)) return '-';
    if (rules.reserved.contains(cpu)) return 'r';
    if (rules.isolated.contains(cpu)) return 'i';
    return '.';
  }

  std::string legend() const {
    std::string text = ". pool   r reserved   i isolated   o occupied   ~ withheld   - not allowed\n";
    for (const auto& [letter, entry] : holders_) {
      const placement::Placement& placement = entry->placement;
      text += fmt::format("{} {}/{}: {}{}\n", letter, entry->key.pod_uid, entry->key.name, placement.cpus.to_string(),
                          placement.withheld.empty() ? "" : ", withholds " + placement.withheld.to_string());
    }
    if (!picture_.offline.empty()) text += fmt::format("offline: {}\n", picture_.offline.to_string());
    return text;
  }

 private:
  const simulate::Snapshot& picture_;
  std::map<std::uint32_t, char> held_;
  std::vector<std::pair<char, const placement::LedgerEntry*>> holders_;
};

void draw(std::string& text, const std::string& title, const CpuSet& cpus, const topology::Topology& topology,
          const CpuSymbols& symbols) {
  std::string line = title;
  const std::string margin(title.size(), ' ');
  CpuSet drawn;
  for (const std::uint32_t cpu : cpus) {
    const topology::Pu* pu = topology.pu(cpu);
    if (pu == nullptr || drawn.contains(cpu)) continue;
    const CpuSet core = pu->core == topology::kNoPosition ? CpuSet{cpu} : topology.cores[pu->core] & cpus;
    drawn |= core;
    std::string box = " [";
    for (const std::uint32_t thread : core) box += symbols.of(thread);
    box += ']';
    if (line.size() + box.size() > kColumns && line.size() > margin.size()) {
      text += line + '\n';
      line = margin;
    }
    line += box;
  }
  text += line + '\n';
}

}  // namespace

std::string machine_map(const simulate::Snapshot& snapshot) {
  const topology::Topology& topology = *snapshot.topology;
  const CpuSymbols symbols(snapshot);
  std::string text;
  CpuSet without_node = topology.online;
  for (const topology::Node& node : topology.nodes) {
    if (node.memory_only) continue;
    without_node -= node.cpus;
    const std::string where = fmt::format("node {} (CPUs {})", node.os_index, node.cpus.to_string());
    draw(text, fmt::format("{:<28}", where), node.cpus, topology, symbols);
  }
  if (!without_node.empty()) draw(text, fmt::format("{:<28}", "no node"), without_node, topology, symbols);
  return text + symbols.legend();
}

}  // namespace topolet::cli
