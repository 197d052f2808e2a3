#include "core/cli/machine_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/escape.hpp"

namespace topolet::cli {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kTitleColumns = 28;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr char kManyMore = '*';

enum class Use : std::uint8_t {
  kExclusive,
  kLost,
  kWithheld,
  kOccupied,
  kNotAllowed,
  kReserved,
  kIsolated,
  kPool,
  kOffline
};
/// In the order of Use. An exclusive CPU has the letter of its container, and an offline one is not drawn.
constexpr std::array<char, 9> kSigns = {'A', '!', '~', 'o', '-', 'r', 'i', '.', ' '};
constexpr std::array<const char*, 9> kWords = {"exclusive", "overruled", "withheld", "occupied", "not-allowed",
                                               "reserved",  "isolated",  "pool",     "offline"};

/// The use of every CPU.
class CpuUses {
 public:
  explicit CpuUses(const MachineMap& map) : map_(map) {
    for (const MachineMap::Holder& holder : map.holders) {
      if (holder.is_exclusive) note(exclusive_, holder.cpus, holder);
      note(withheld_, holder.withheld, holder);
    }
  }

  Use use_of(std::uint32_t cpu) const {
    if (!map_.online.contains(cpu)) return Use::kOffline;
    if (const auto found = exclusive_.find(cpu); found != exclusive_.end())
      return found->second->lost.empty() ? Use::kExclusive : Use::kLost;
    if (withheld_.count(cpu) != 0) return Use::kWithheld;
    if (map_.occupied.contains(cpu)) return Use::kOccupied;
    if (!map_.allowed.contains(cpu)) return Use::kNotAllowed;
    if (map_.reserved.contains(cpu)) return Use::kReserved;
    return map_.isolated.contains(cpu) ? Use::kIsolated : Use::kPool;
  }

  /// Null if it is nobody's.
  const MachineMap::Holder* holder_of(std::uint32_t cpu) const {
    for (const auto* by_cpu : {&exclusive_, &withheld_}) {
      if (const auto found = by_cpu->find(cpu); found != by_cpu->end()) return found->second;
    }
    return nullptr;
  }

  char sign_of(std::uint32_t cpu) const {
    const Use use = use_of(cpu);
    return use == Use::kExclusive ? letter_of(*holder_of(cpu)) : kSigns[static_cast<std::size_t>(use)];
  }

  char letter_of(const MachineMap::Holder& holder) const {
    const auto position = static_cast<std::size_t>(&holder - map_.holders.data());
    return position < kLetters.size() ? kLetters[position] : kManyMore;
  }

 private:
  using ByCpu = std::map<std::uint32_t, const MachineMap::Holder*>;
  static void note(ByCpu& by_cpu, const CpuSet& cpus, const MachineMap::Holder& holder) {
    for (const std::uint32_t cpu : cpus) by_cpu[cpu] = &holder;
  }

  const MachineMap& map_;
  ByCpu exclusive_;
  ByCpu withheld_;
};

std::map<std::uint32_t, CpuSet> cores_by_cpu(const MachineMap& map) {
  std::map<std::uint32_t, CpuSet> by_cpu;
  for (const CpuSet& core : map.cores) {
    for (const std::uint32_t cpu : core) by_cpu[cpu] = core;
  }
  return by_cpu;
}

/// '?' where it is not known.
char tenths_used(const std::map<std::uint32_t, std::int64_t>& used_milli, std::uint32_t cpu) {
  const auto known = used_milli.find(cpu);
  if (known == used_milli.end()) return '?';
  return static_cast<char>('0' + std::clamp<std::int64_t>(known->second / 100, 0, 9));
}

template <class SignOf>
void draw_row(std::string& text, const std::string& title, const CpuSet& cpus,
              const std::map<std::uint32_t, CpuSet>& cores, const CpuUses& uses, SignOf sign_of) {
  std::string line = title;
  const std::string margin(title.size(), ' ');
  CpuSet drawn;
  for (const std::uint32_t cpu : cpus) {
    if (uses.use_of(cpu) == Use::kOffline || drawn.contains(cpu)) continue;
    const auto found = cores.find(cpu);
    const CpuSet core = found == cores.end() ? CpuSet{cpu} : found->second & cpus;
    drawn |= core;
    std::string box = " [";
    for (const std::uint32_t thread : core) box += sign_of(thread);
    box += ']';
    if (line.size() + box.size() > kColumns && line.size() > margin.size()) {
      text += line + '\n';
      line = margin;
    }
    line += box;
  }
  text += line + '\n';
}

std::string legend(const MachineMap& map, const CpuUses& uses) {
  std::string text = ". pool   r reserved   i isolated   o occupied   ~ withheld   - not allowed\n";
  for (const MachineMap::Holder& holder : map.holders) {
    const bool is_lost = !holder.lost.empty();
    text += fmt::format("{} {}: {}{}{}{}\n", is_lost ? '!' : uses.letter_of(holder), escaped(holder.name),
                        holder.cpus.to_string(),
                        holder.withheld.empty() ? "" : ", withholds " + holder.withheld.to_string(),
                        is_lost ? ", " + holder.lost + ": not exclusive now" : "",
                        holder.seen_on.empty() ? "" : ", seen on " + holder.seen_on.to_string());
  }
  if (!map.memory_only.empty()) text += fmt::format("nodes without CPUs: {}\n", map.memory_only.to_string());
  if (!map.offline.empty()) text += fmt::format("offline: {}\n", map.offline.to_string());
  return text;
}

}  // namespace

std::string draw(const MachineMap& map) {
  const CpuUses uses(map);
  const auto cores = cores_by_cpu(map);
  std::vector<std::pair<std::string, CpuSet>> rows;
  CpuSet without_node = map.online;
  for (const MachineMap::Node& node : map.nodes) {
    without_node -= node.cpus;
    rows.emplace_back(fmt::format("node {} (CPUs {})", node.os_index, node.cpus.to_string()), node.cpus);
  }
  if (!without_node.empty()) rows.emplace_back("no node", without_node);
  std::size_t width = kTitleColumns;
  for (const auto& [title, cpus] : rows) width = std::max(width, std::min(title.size(), kColumns / 2));
  std::string text;
  for (const auto& row : rows) {
    draw_row(text, fmt::format("{:<{}}", row.first, width), row.second, cores, uses,
             [&uses](std::uint32_t cpu) { return uses.sign_of(cpu); });
    if (!map.used_milli) continue;
    draw_row(text, fmt::format("{:<{}}", "  used", width), row.second, cores, uses,
             [&map](std::uint32_t cpu) { return tenths_used(*map.used_milli, cpu); });
  }
  if (map.used_milli) text += "used: tenths of each CPU over five seconds, 9 for nine and more   ? not known\n";
  return text + legend(map, uses);
}

nlohmann::ordered_json to_json(const MachineMap& map) {
  const CpuUses uses(map);
  const auto cores = cores_by_cpu(map);
  std::map<std::uint32_t, std::uint32_t> nodes;
  for (const MachineMap::Node& node : map.nodes) {
    for (const std::uint32_t cpu : node.cpus) nodes[cpu] = node.os_index;
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::uint32_t cpu : map.online | map.offline) {
    nlohmann::ordered_json& object = json.emplace_back();
    object["cpu"] = cpu;
    object["node"] = nullptr;
    if (const auto node = nodes.find(cpu); node != nodes.end()) object["node"] = node->second;
    object["core"] = nullptr;
    if (const auto core = cores.find(cpu); core != cores.end()) object["core"] = *core->second.begin();
    const Use use = uses.use_of(cpu);
    object["use"] = use == Use::kLost ? uses.holder_of(cpu)->lost : kWords[static_cast<std::size_t>(use)];
    if (map.used_milli) {
      const auto used = map.used_milli->find(cpu);
      object["used_milli"] =
          used == map.used_milli->end() ? nlohmann::ordered_json() : nlohmann::ordered_json(used->second);
    }
    object["by"] = nullptr;
    if (const MachineMap::Holder* holder = uses.holder_of(cpu); holder != nullptr) object["by"] = holder->name;
  }
  return json;
}

}  // namespace topolet::cli
