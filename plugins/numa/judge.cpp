#include "plugins/numa/judge.hpp"

#include <algorithm>

#include "plugins/numa/amounts.hpp"

namespace topolet::numa {
namespace {

// One node more outweighs any distance, any distance outweighs the strategy.
constexpr std::int32_t kBest = 100;
constexpr std::int32_t kWorst = -100;
constexpr std::int32_t kNodeStep = 30;
constexpr std::size_t kNodeSteps = 7;

/// What the least and the largest difference cost.
struct Cost {
  std::int32_t least;
  std::int32_t most;
};
struct Costs {
  Cost distance;
  Cost strategy;
};
constexpr Costs kCosts = {{11, 19}, {1, 10}};
constexpr Costs kClosest = {{20, 26}, {1, 3}};  // with prefer-closest-numa-nodes

const Costs& costs_of(const PolicyOptions& options) { return options.prefer_closest_numa_nodes ? kClosest : kCosts; }

// With align-by-socket a node more inside the package is no more than a taste.
constexpr std::int32_t kInsidePackageStep = 2;
// Whoever lacks something ranks below all that lack nothing.
constexpr std::int32_t kLacksNothing = -50;
constexpr std::int32_t kLacksSomething = -60;

/// 0 for the best, then from the least to the most in proportion to how far `value` is from it.
std::int32_t penalty(std::int64_t value, std::int64_t best, std::int64_t worst, const Cost& cost) {
  if (value == best) return 0;
  const double range = static_cast<double>(worst) - static_cast<double>(best);
  const double far = (static_cast<double>(value) - static_cast<double>(best)) / range;
  return cost.least + static_cast<std::int32_t>(far * (cost.most - cost.least));
}

/// Thousandths of `asked` that are missing; at least one if any is.
std::int64_t missing(std::int64_t asked, std::int64_t there) {
  if (asked <= there) return 0;
  const double part = static_cast<double>(asked - std::max<std::int64_t>(0, there)) / static_cast<double>(asked);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(part * 1000));
}

}  // namespace

void Judge::Range::include(std::int64_t value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

Judge::Judge(const topolet_topology& topology, const std::vector<Place>& places, const Asked& asked,
             const PolicyOptions& options)
    : asked_(asked), options_(options), distances_known_(topology.distances_known != 0) {
  make_wish(places);
  std::size_t nodes = 0;
  std::size_t packages = 0;
  std::size_t for_cpus = SIZE_MAX;
  for (const Place& place : places) {
    if (has_cpus(place)) for_cpus = std::min(for_cpus, place.width);
    widest_ = std::max(widest_, place.width);
    nodes = std::max(nodes, sdk::size_of(place.nodes));
    packages = std::max(packages, place.packages);
    if (could_hold(place)) narrowest_ = std::min(narrowest_, place.width);
  }
  // What nothing could hold is denied by whoever counts what is free, not for its width.
  if (narrowest_ == SIZE_MAX) narrowest_ = widest_;
  wide_for_memory_ = for_cpus < narrowest_;
  by_socket_ =
      options.align_by_socket && asked.alignment != Alignment::kSingleNumaNode && packages > 0 && packages <= nodes;
  if (by_socket_) {
    const std::size_t nodes_of_package = std::max<std::size_t>(1, nodes / packages);
    fewest_packages_ = (narrowest_ + nodes_of_package - 1) / nodes_of_package;
  }
  for (const Place& place : places) {
    if (!holds(place)) continue;
    if (lacking(place) > 0) {
      some_lack_ = true;
      continue;
    }
    distances_[width_of(place)].include(distance_of(place));
    if (!crowds_out(place)) measures_[{width_of(place), distance_of(place)}].include(measure(place));
  }
}

/// What nothing holds is no reason to prefer one place to another.
void Judge::make_wish(const std::vector<Place>& places) {
  const auto any = [&](auto holds_it) {
    return std::any_of(places.begin(), places.end(), [&](const Place& p) { return holds(p) && holds_it(p); });
  };
  const bool pod_fits = any([&](const Place& p) { return p.free >= asked_.pod_cpus; });
  wish_.cpus = std::max(asked_.cpus, pod_fits ? asked_.pod_cpus : 0);
  const bool pod_shares = any([&](const Place& p) { return p.milli_free() >= asked_.pod_milli; });
  wish_.milli = std::max(asked_.milli, pod_shares ? asked_.pod_milli : 0);
  for (const std::int64_t memory : {asked_.memory, asked_.pod_memory}) {
    if (any([&](const Place& p) { return p.memory.holds(memory); })) wish_.memory = std::max(wish_.memory, memory);
  }
  wish_.pages = any([](const Place& p) { return p.pages_fit; });
  wish_.cores = any([](const Place& p) { return p.cores_fit; });
}

bool Judge::has_cpus(const Place& place) const {
  if (!place.cores_could_fit) return false;
  if (asked_.exclusive) return place.cpus >= (asked_.deniable() ? std::max(asked_.cpus, asked_.pod_cpus) : wish_.cpus);
  return asked_.deniable() || static_cast<std::int64_t>(place.cpus) * 1000 >= asked_.milli;
}

bool Judge::could_hold(const Place& place) const {
  if (!has_cpus(place)) return false;
  if (asked_.memory_bound) return place.memory.could_hold(std::max(asked_.memory, asked_.pod_memory));
  // Memory that is not bound denies nobody a width, but one without enough of it is none to strive for.
  return asked_.deniable() || place.memory.could_hold(wish_.memory);
}

bool Judge::holds(const Place& place) const {
  if (place.must_fit_cores && !place.cores_fit) return false;
  const bool strict = asked_.deniable();  // the pod as a whole is admitted, or not at all
  if (asked_.exclusive && place.free < (strict ? std::max(asked_.cpus, asked_.pod_cpus) : asked_.cpus)) return false;
  if (!asked_.memory_bound) return true;
  return place.pages_fit && place.memory.holds(strict ? std::max(asked_.memory, asked_.pod_memory) : asked_.memory);
}

bool Judge::is_aligned(const Place& place) const {
  if (asked_.alignment == Alignment::kSingleNumaNode) return place.width == 1;
  return place.width == narrowest_ || (by_socket_ && place.packages == fewest_packages_);
}

std::int64_t Judge::lacking(const Place& place) const {
  const bool lacks_some = (wish_.pages && !place.pages_fit) || (wish_.cores && !place.cores_fit);
  std::int64_t most = lacks_some ? 500 : 0;
  if (asked_.exclusive) {
    most = std::max(most, missing(static_cast<std::int64_t>(wish_.cpus), static_cast<std::int64_t>(place.free)));
  } else if (wish_.milli > 0) {
    // The whole load counts: of two nodes that are asked for too much the less loaded is better.
    most = std::max(most, missing(place.milli_asked + wish_.milli, static_cast<std::int64_t>(place.free) * 1000));
  }
  if (place.memory.known) most = std::max(most, missing(wish_.memory, place.memory.free));
  // Away from the pod the narrowest is best again.
  const std::size_t wider = place.width - std::min(place.width, narrowest_);
  if (place.outside_pod > 0) most += static_cast<std::int64_t>(300 + 100 * std::min<std::size_t>(wider, 7));
  return std::min<std::int64_t>(most, 1000);
}

std::int64_t Judge::measure(const Place& place) const {
  if (asked_.exclusive || asked_.milli > 0 || !place.memory.known) return place.milli_free();
  return place.memory.free >> 20;
}

bool Judge::crowds_out(const Place& place) const {
  return asked_.exclusive && place.milli_asked > 0 &&
         place.milli_free() < static_cast<std::int64_t>(asked_.cpus) * 1000;
}

std::uint32_t Judge::distance_of(const Place& place) const {
  return distances_known_ ? place.distance : static_cast<std::uint32_t>(place.packages);
}

Judge::Width Judge::width_of(const Place& place) const { return {by_socket_ ? place.packages : 0, place.width}; }

/// A set of several nodes is one of many: without name and numbers they all say the same, and a denial stays readable.
bool Judge::is_named(const Place& place) const { return place.width == 1 || place.width == widest_; }

std::string Judge::cpu_shortage(const Place& place) const {
  const std::size_t wanted = std::max(asked_.cpus, asked_.deniable() ? asked_.pod_cpus : 0);
  if (!asked_.exclusive) return "";
  if (place.free >= wanted && (place.cores_fit || !place.must_fit_cores)) return "";
  if (place.free >= wanted) {
    return "no whole free cores that make up " + counted(asked_.cpus, "CPU") + " (full-pcpus-only)";
  }
  std::string what = std::to_string(place.free) + " of " + counted(place.cpus, "CPU") + " free";
  if (place.cpus < wanted) what = "only " + counted(place.cpus, "CPU");
  if (!is_named(place)) what = "too few CPUs free";
  return what + ", " + std::to_string(wanted) + " asked for" + (wanted > asked_.cpus ? " by the pod" : "");
}

std::string Judge::memory_shortage(const Place& place) const {
  if (!asked_.memory_bound) return "";
  const std::int64_t wanted = std::max(asked_.memory, asked_.deniable() ? asked_.pod_memory : 0);
  if (!place.memory.holds(wanted)) {
    std::string what = bytes_text(place.memory.free) + " of " + bytes_text(place.memory.capacity) + " memory free";
    if (!is_named(place)) what = "too little memory free";
    return what + ", " + bytes_text(wanted) + " asked for" + (wanted > asked_.memory ? " by the pod" : "");
  }
  if (place.pages_fit) return "";
  std::string asked;
  for (const auto& [page, bytes] : asked_.huge_pages) {
    asked += (asked.empty() ? "" : " and ") + bytes_text(bytes) + " in pages of " + bytes_text(page);
  }
  return "too few huge pages free, " + asked + " asked for";
}

/// Empty if the place may be used.
std::string Judge::refusal(const Place& place) const {
  // Of the sets that are too wide anyway nobody wants to know how much they have.
  if (asked_.deniable() && sdk::size_of(asked_.pod_nodes) == 0 && !is_aligned(place) &&
      (place.width > narrowest_ || asked_.alignment == Alignment::kSingleNumaNode)) {
    const std::string policy = "policy " + std::string(name_of(asked_.alignment));
    if (asked_.alignment == Alignment::kSingleNumaNode) return policy + " admits one node only, no wider set";
    return policy + " admits no more than the " + counted(narrowest_, "node") +
           " that could hold it on an empty machine";
  }
  const std::string cpus = cpu_shortage(place);
  const std::string memory = memory_shortage(place);
  if (!cpus.empty() || !memory.empty()) {
    const char* const has = place.width == 1 && sdk::size_of(place.nodes) == 1 ? " has " : " have ";
    const std::string subject = is_named(place) ? place.name() : counted(place.width, "node") + " together";
    return subject + has + cpus + (!cpus.empty() && !memory.empty() ? ", and " : "") + memory;
  }
  if (asked_.deniable() && place.outside_pod > 0) {
    return "outside the nodes " + sdk::Set(asked_.pod_nodes).to_string() + " that the pod was given (scope = pod)";
  }
  return "";
}

std::int32_t Judge::for_nodes(const Place& place) const {
  if (by_socket_ && place.packages <= fewest_packages_) {
    const std::size_t more = place.width > narrowest_ ? place.width - narrowest_ : 0;
    return kInsidePackageStep * static_cast<std::int32_t>(std::min<std::size_t>(more, 5));
  }
  const std::size_t more =
      by_socket_ ? place.packages - fewest_packages_ : place.width - std::min(place.width, narrowest_);
  return kNodeStep * static_cast<std::int32_t>(std::min(more, kNodeSteps));
}

std::int32_t Judge::for_strategy(const Place& place) const {
  const Cost& cost = costs_of(options_).strategy;
  if (crowds_out(place)) return cost.most;
  const Range& measures = measures_.at({width_of(place), distance_of(place)});
  const bool packed = options_.strategy == Strategy::kPacked;
  return penalty(measure(place), packed ? measures.low : measures.high, packed ? measures.high : measures.low, cost);
}

std::string Judge::whose_strategy(const Place& place) const {
  if (crowds_out(place)) return "shared containers there ask for " + milli_text(place.milli_asked);
  return options_.strategy == Strategy::kPacked ? "a fuller one fits too" : "an emptier one fits too";
}

std::string Judge::praise(const Place& place) const {
  if (asked_.exclusive) {
    const std::string all = asked_.cpus == 1 ? "the CPU" : "all " + counted(asked_.cpus, "CPU");
    const char* const verb = place.width > 1 ? " together hold " : sdk::size_of(place.nodes) > 0 ? " holds " : " hold ";
    return place.name() + verb + all + " (" + std::to_string(place.free) + " free)";
  }
  const char* const verb = place.width > 1 || sdk::size_of(place.nodes) == 0 ? " have " : " has ";
  if (asked_.milli == 0) {
    if (!place.memory.known) return place.name() + verb + "room: how much memory is not known";
    return place.name() + verb + bytes_text(place.memory.free) + " memory that nobody asks for, " +
           bytes_text(asked_.memory) + " asked for";
  }
  return place.name() + verb + milli_text(std::max<std::int64_t>(0, place.milli_free())) + " of " +
         counted(place.free, "shared CPU") + " that nobody asks for, " + milli_text(asked_.milli) + " asked for";
}

std::string Judge::complaint(const Place& place) const {
  std::string text;
  const auto add = [&text](const std::string& what) { text += "; " + what; };
  if (place.outside_pod > 0)
    add("the pod is on " + std::string(sdk::size_of(asked_.pod_nodes) == 1 ? "node " : "nodes ") +
        sdk::Set(asked_.pod_nodes).to_string());
  if (asked_.exclusive && place.free < wish_.cpus) {
    add("too few for the pod, which asks for " + std::to_string(wish_.cpus));
  }
  if (wish_.milli > asked_.milli && wish_.milli > place.milli_free()) {
    add("too few for the pod, which asks for " + milli_text(wish_.milli));
  }
  if (!place.memory.holds(wish_.memory) && (asked_.exclusive || asked_.milli > 0)) {
    add(bytes_text(place.memory.free) + " of " + bytes_text(place.memory.capacity) + " memory free, " +
        bytes_text(wish_.memory) + " asked for");
  }
  if (wish_.pages && !place.pages_fit) add("too few huge pages");
  if (wish_.cores && !place.cores_fit) add("too few on whole free cores (full-pcpus-only)");
  return text;
}

Verdict Judge::weigh(const Place& place) const {
  std::string reason = praise(place);
  if (const std::int64_t lacks = lacking(place); lacks > 0) {
    const auto worse = static_cast<std::int32_t>(lacks * (kLacksSomething - kWorst) / 1000);
    return {TOPOLET_VERDICT_SCORE, kLacksSomething - worse, reason + complaint(place)};
  }
  const Range& distances = distances_.at(width_of(place));
  const std::int32_t nodes = for_nodes(place);
  const std::int32_t distance = penalty(distance_of(place), distances.low, distances.high, costs_of(options_).distance);
  const std::int32_t strategy = for_strategy(place);
  if (nodes > 0) reason += "; " + counted(narrowest_, "node") + " could";
  if (wide_for_memory_ && place.width == narrowest_) {
    reason += "; fewer could not hold the memory, " + bytes_text(std::max(asked_.memory, asked_.pod_memory));
  }
  if (distance > 0) reason += distances_known_ ? "; others as wide are closer" : "; others are of fewer packages";
  if (strategy > 0) reason += "; " + whose_strategy(place);
  if (place.width > 1 && !distances_known_) reason += "; distances not known, 10 and 20 assumed";
  const std::int32_t least = some_lack_ ? kLacksNothing : kWorst;
  return {TOPOLET_VERDICT_SCORE, std::max(least, kBest - nodes - distance - strategy), std::move(reason)};
}

Verdict Judge::judge(const Place& place) const {
  if (std::string why_not = refusal(place); !why_not.empty()) {
    return {TOPOLET_VERDICT_REJECT, 0, std::move(why_not)};
  }
  Verdict verdict = weigh(place);
  if (!asked_.note.empty()) verdict.reason += "; " + asked_.note;
  return verdict;
}

}  // namespace topolet::numa
