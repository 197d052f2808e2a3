#include "tests/bench/fair_share.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace topolet::bench {
namespace {

/// CPUs that the same sets have, and sets that claims have in common: far fewer than CPUs and claims.
class Division {
 public:
  explicit Division(const std::vector<Claim>& claims) {
    std::map<set_words::Words, std::size_t> known;
    for (const Claim& claim : claims) {
      const auto [set, is_new] = known.try_emplace(claim.cpus.words(), sets_.size());
      if (is_new) sets_.push_back(claim.cpus);
      set_of_.push_back(set->second);
    }
    CpuSet all;
    for (const CpuSet& set : sets_) all |= set;
    std::map<std::vector<bool>, std::size_t> parts;
    for (const std::uint32_t cpu : all) {
      std::vector<bool> members(sets_.size());
      for (std::size_t set = 0; set < sets_.size(); ++set) members[set] = sets_[set].contains(cpu);
      const auto [part, is_new] = parts.try_emplace(members, capacity_.size());
      if (is_new) {
        capacity_.push_back(0);
        members_.push_back(std::move(members));
      }
      capacity_[part->second] += kCpu;
    }
  }

  std::size_t set_of(std::size_t claim) const { return set_of_[claim]; }
  std::size_t sets() const { return sets_.size(); }

  /// Returns true if each set can have so much.
  bool can_have(const std::vector<std::int64_t>& wanted) const {
    std::vector<std::int64_t> left = wanted;
    std::vector<std::int64_t> room = capacity_;
    // flow[set][part]
    std::vector<std::vector<std::int64_t>> flow(sets_.size(), std::vector<std::int64_t>(capacity_.size()));
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      while (left[set] > 0 && augment(set, left, room, flow)) {
      }
      if (left[set] > 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kCpu = 1000;
  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  /// Gives more to `from`, where others can take from elsewhere what they have now.
  bool augment(std::size_t from, std::vector<std::int64_t>& left, std::vector<std::int64_t>& room,
               std::vector<std::vector<std::int64_t>>& flow) const {
    std::vector<std::size_t> part_from(capacity_.size(), kNobody);  // the set that reached it
    std::vector<std::size_t> set_from(sets_.size(), kNobody);       // the part that reached it
    std::queue<std::size_t> open;
    open.push(from);
    while (!open.empty()) {
      const std::size_t set = open.front();
      open.pop();
      for (std::size_t part = 0; part < capacity_.size(); ++part) {
        if (!members_[part][set] || part_from[part] != kNobody) continue;
        part_from[part] = set;
        if (room[part] > 0) {
          push(part, from, part_from, set_from, left, room, flow);
          return true;
        }
        for (std::size_t other = 0; other < sets_.size(); ++other) {
          if (other == from || set_from[other] != kNobody || flow[other][part] == 0) continue;
          set_from[other] = part;
          open.push(other);
        }
      }
    }
    return false;
  }

  static void push(std::size_t end, std::size_t from, const std::vector<std::size_t>& part_from,
                   const std::vector<std::size_t>& set_from, std::vector<std::int64_t>& left,
                   std::vector<std::int64_t>& room, std::vector<std::vector<std::int64_t>>& flow) {
    std::int64_t amount = std::min(left[from], room[end]);
    for (std::size_t part = end; part_from[part] != from; part = set_from[part_from[part]]) {
      amount = std::min(amount, flow[part_from[part]][set_from[part_from[part]]]);
    }
    room[end] -= amount;
    left[from] -= amount;
    std::size_t part = end;
    while (true) {
      const std::size_t set = part_from[part];
      flow[set][part] += amount;
      if (set == from) return;
      part = set_from[set];
      flow[set][part] -= amount;
    }
  }

  std::vector<CpuSet> sets_;
  std::vector<std::size_t> set_of_;         ///< by claim
  std::vector<std::int64_t> capacity_;      ///< by part
  std::vector<std::vector<bool>> members_;  ///< by part and set
};

class Filling {
 public:
  explicit Filling(const std::vector<Claim>& claims)
      : claims_(claims), division_(claims), shares_(claims.size()), is_settled_(claims.size()) {}

  std::vector<std::int64_t> fill() {
    for (std::size_t i = 0; i < claims_.size(); ++i) is_settled_[i] = claims_[i].milli <= 0 || claims_[i].cpus.empty();
    while (std::find(is_settled_.begin(), is_settled_.end(), false) != is_settled_.end()) raise();
    return shares_;
  }

 private:
  /// In thousandths of a CPU for a weight of kUnit.
  static constexpr std::int64_t kUnit = 1000;

  std::int64_t at(std::size_t claim, std::int64_t level) const {
    return std::min(claims_[claim].milli, level * claims_[claim].weight / kUnit);
  }

  std::vector<std::int64_t> wanted(std::int64_t level) const {
    std::vector<std::int64_t> sums(division_.sets());
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      sums[division_.set_of(i)] += is_settled_[i] ? shares_[i] : at(i, level);
    }
    return sums;
  }

  /// Finds how high all that are open can go together. At that height those are settled that have all they want, and
  /// those whose CPUs have no more.
  void raise() {
    std::int64_t low = 0;
    std::int64_t high = 1;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (!is_settled_[i]) high = std::max(high, claims_[i].milli * kUnit / claims_[i].weight + 1);
    }
    const std::int64_t top = high;
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      division_.can_have(wanted(middle)) ? low = middle : high = middle - 1;
    }
    std::vector<std::int64_t> now = wanted(low);
    std::vector<bool> is_full(division_.sets(), low == top);
    for (std::size_t set = 0; set < now.size() && low < top; ++set) {
      ++now[set];
      is_full[set] = !division_.can_have(now);
      --now[set];
    }
    const auto is_at_its_end = [&](std::size_t i) {
      return at(i, low) == claims_[i].milli || is_full[division_.set_of(i)];
    };
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (!is_settled_[i]) open.push_back(i);
    }
    if (std::none_of(open.begin(), open.end(), is_at_its_end)) return settle(first_without_room(open, low), low);
    for (const std::size_t i : open) {
      if (is_at_its_end(i)) settle(i, low);
    }
  }

  void settle(std::size_t claim, std::int64_t level) {
    shares_[claim] = at(claim, level);
    is_settled_[claim] = true;
  }

  /// Where each of them could go higher but not all of them: the first for which less than a thousandth is left, once
  /// those before it are higher.
  std::size_t first_without_room(const std::vector<std::size_t>& open, std::int64_t level) const {
    std::vector<std::int64_t> sums = wanted(level);
    for (const std::size_t i : open) {
      sums[division_.set_of(i)] += at(i, level + 1) - at(i, level);
      if (!division_.can_have(sums)) return i;
    }
    return open.back();
  }

  const std::vector<Claim>& claims_;
  const Division division_;
  std::vector<std::int64_t> shares_;
  std::vector<bool> is_settled_;
};

}  // namespace

std::vector<std::int64_t> fair_shares(const std::vector<Claim>& claims) { return Filling(claims).fill(); }

}  // namespace topolet::bench
