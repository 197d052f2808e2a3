#include "plugins/numa/kubelet_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "plugins/numa/free_cpus.hpp"

namespace topolet::numa {
namespace {

using Positions = std::vector<std::size_t>;

/// Calls `visit` with every choice of `k` elements of `from`, in lexicographic order, until it returns false.
template <class Visit>
void for_each_choice(const Positions& from, std::size_t k, Visit visit) {
  if (k == 0 || k > from.size()) return;
  Positions at(k);
  std::iota(at.begin(), at.end(), 0);
  Positions choice(k);
  while (true) {
    for (std::size_t i = 0; i < k; ++i) choice[i] = from[at[i]];
    if (!visit(choice)) return;
    std::size_t i = k;
    while (i > 0 && at[i - 1] == from.size() - k + i - 1) --i;
    if (i == 0) return;
    ++at[i - 1];
    for (; i < k; ++i) at[i] = at[i - 1] + 1;
  }
}

/// Rounded to thousandths at each step, as in the kubelet: the rounding decides which balances count as equal.
double standard_deviation(const Positions& values) {
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const std::size_t value : values) sum += static_cast<double>(value);
  const double mean = rounded(sum / count);
  double squares = 0;
  for (const std::size_t value : values) {
    const double off = static_cast<double>(value) - mean;
    squares += off * off;
  }
  return rounded(std::sqrt(squares / count));
}

/// Nodes to take CPUs from, by position in Distribution::nodes_.
struct NodeChoice {
  Positions nodes;                                      ///< each gives equally many groups
  Positions remainder;                                  ///< these give what is left, one group each in turn
  double balance = std::numeric_limits<double>::max();  ///< standard deviation of what stays free on all nodes
};

/// Takes CPUs evenly from several nodes, in groups of `group` CPUs.
class Distribution {
 public:
  Distribution(const Layout& layout, FreeCpus free, std::size_t wanted, std::size_t group, AcrossCores across_cores)
      : layout_(layout),
        free_(std::move(free)),
        wanted_(wanted),
        group_(group),
        across_cores_(across_cores),
        nodes_(free_.nodes()) {
    for (const std::uint32_t node : nodes_) free_by_node_.push_back(free_.in_node(node));
  }

  /// Empty if no set of nodes can give equally many.
  std::vector<std::uint32_t> take() {
    const std::size_t groups_of_node = ceil_of(ceil_of(layout_.os_index.size(), group_), layout_.node_count);
    const std::size_t groups_wanted = ceil_of(wanted_, group_);
    const std::size_t widest = std::min(groups_wanted, nodes_.size());
    for (std::size_t width = ceil_of(groups_wanted, groups_of_node); width <= widest; ++width) {
      const NodeChoice best = best_of(width);
      if (!best.nodes.empty()) return take(best);
    }
    return {};
  }

 private:
  static std::size_t ceil_of(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

  std::size_t even_part(std::size_t width) const { return wanted_ / width / group_ * group_; }

  /// All of `from`, those with the most free CPUs first.
  static Positions by_most_free(Positions from, const Positions& free) {
    std::stable_sort(from.begin(), from.end(), [&free](std::size_t a, std::size_t b) { return free[a] > free[b]; });
    return from;
  }

  NodeChoice best_of(std::size_t width) const {
    Positions all(nodes_.size());
    std::iota(all.begin(), all.end(), 0);
    NodeChoice best;
    const auto consider = [&](const Positions& nodes) {
      if (std::optional<NodeChoice> choice = choice_of(nodes); choice && choice->balance < best.balance) {
        best = std::move(*choice);
      }
      return best.balance > 0;
    };
    if (nodes_.size() <= kExactNodes) {
      for_each_choice(all, width, consider);
    } else {
      Positions most_free = by_most_free(std::move(all), free_by_node_);
      most_free.resize(width);
      std::sort(most_free.begin(), most_free.end());
      consider(most_free);
    }
    return best;
  }

  std::optional<NodeChoice> choice_of(const Positions& nodes) const {
    const std::size_t part = even_part(nodes.size());
    std::size_t groups = 0;
    for (const std::size_t node : nodes) {
      if (free_by_node_[node] < part) return std::nullopt;
      groups += free_by_node_[node] / group_;
    }
    if (groups * group_ < wanted_) return std::nullopt;
    Positions left = free_by_node_;
    for (const std::size_t node : nodes) left[node] -= part;
    const std::size_t remainder = wanted_ - part * nodes.size();
    if (remainder == 0) return NodeChoice{nodes, {}, standard_deviation(left)};
    NodeChoice best{nodes, {}, std::numeric_limits<double>::max()};
    for_each_remainder(nodes, left, remainder, [&](const Positions& subset) {
      const std::optional<double> balance = balance_after(left, subset, remainder);
      if (balance && *balance < best.balance) {
        best.balance = *balance;
        best.remainder = subset;
      }
      return true;
    });
    if (best.remainder.empty()) return std::nullopt;
    return best;
  }

  /// Calls `visit` with every set of nodes that may give the remainder, the largest sets first.
  template <class Visit>
  void for_each_remainder(const Positions& nodes, const Positions& left, std::size_t remainder, Visit visit) const {
    Positions able;
    for (const std::size_t node : nodes) {
      if (left[node] >= group_) able.push_back(node);
    }
    if (nodes_.size() > kExactNodes) {
      able = by_most_free(std::move(able), left);
      able.resize(std::min(able.size(), remainder / group_));
      std::sort(able.begin(), able.end());
      if (!able.empty()) visit(able);
      return;
    }
    for (std::size_t k = able.size(); k > 0; --k) for_each_choice(able, k, visit);
  }

  /// The balance after `subset` gave the remainder; nothing if it cannot.
  std::optional<double> balance_after(Positions left, const Positions& subset, std::size_t remainder) const {
    while (remainder > 0) {
      const std::size_t before = remainder;
      for (const std::size_t node : subset) {
        if (remainder == 0 || left[node] < group_) continue;
        left[node] -= group_;
        remainder -= group_;
      }
      if (remainder == before) return std::nullopt;
    }
    return standard_deviation(left);
  }

  std::vector<std::uint32_t> take(const NodeChoice& choice) {
    std::vector<std::uint32_t> taken;
    const std::size_t part = even_part(choice.nodes.size());
    for (const std::size_t node : choice.nodes) take_from(node, part, taken);
    while (taken.size() < wanted_) {
      const std::size_t before = taken.size();
      for (const std::size_t node : choice.remainder) {
        if (taken.size() < wanted_ && free_.in_node(nodes_[node]) >= group_) take_from(node, group_, taken);
      }
      if (taken.size() == before) return {};
    }
    return taken;
  }

  void take_from(std::size_t node, std::size_t count, std::vector<std::uint32_t>& taken) {
    const std::vector<std::uint32_t> cpus =
        FreeCpus(layout_, free_.cpus_of_node(nodes_[node])).take_packed(count, false, across_cores_);
    free_.remove(cpus);
    taken.insert(taken.end(), cpus.begin(), cpus.end());
  }

  const Layout& layout_;
  FreeCpus free_;
  std::size_t wanted_;
  std::size_t group_;
  AcrossCores across_cores_;
  std::vector<std::uint32_t> nodes_;
  Positions free_by_node_;  ///< number of CPUs, by position in nodes_
};

std::vector<std::uint32_t> positions_of(const Layout& layout, topolet_set usable) {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t pu = 0; pu < layout.os_index.size(); ++pu) {
    if (topolet_set_has(usable, layout.os_index[pu]) != 0) positions.push_back(pu);
  }
  return positions;
}

std::vector<std::uint32_t> os_indices(const Layout& layout, std::vector<std::uint32_t> cpus) {
  for (std::uint32_t& cpu : cpus) cpu = layout.os_index[cpu];
  return cpus;
}

}  // namespace

std::vector<std::uint32_t> kubelet_order(const Layout& layout, topolet_set usable, std::size_t wanted,
                                         const KubeletOrder& options) {
  const std::vector<std::uint32_t> cpus = positions_of(layout, usable);
  if (wanted == 0 || cpus.size() < wanted) return {};
  FreeCpus free(layout, cpus);
  const AcrossCores across_cores = !options.distribute_cpus_across_cores ? AcrossCores::kNo
                                   : options.idle_cores_first            ? AcrossCores::kIdleFirst
                                                                         : AcrossCores::kYes;
  if (!options.distribute_cpus_across_numa) {
    return os_indices(layout, free.take_packed(wanted, options.prefer_align_cpus_by_uncorecache, across_cores));
  }
  const std::size_t group = options.full_pcpus_only ? layout.threads_per_core : 1;
  std::vector<std::uint32_t> taken;
  if (wanted % group == 0) taken = Distribution(layout, free, wanted, group, across_cores).take();
  if (taken.empty()) taken = free.take_packed(wanted, false, across_cores);
  return os_indices(layout, std::move(taken));
}

std::vector<std::uint32_t> whole_nodes(const Layout& layout, topolet_set usable, std::size_t wanted) {
  return os_indices(layout, FreeCpus(layout, positions_of(layout, usable)).take_whole_nodes(wanted));
}

}  // namespace topolet::numa
