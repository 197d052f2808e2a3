// Choice of zones on a node whose containers take CPUs from different sources: the pool, or isolated ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cluster/extender/choose.hpp"
#include "cluster/extender/choose_alike.hpp"
#include "cluster/extender/node_room.hpp"
#include "cluster/extender/own_cpus.hpp"

namespace topolet::extender {
namespace {

/// A node as if it had isolated CPUs only.
class IsolatedView {
 public:
  explicit IsolatedView(const FreeZones& zones)
      : zones_(zones), node_(zones.node), free_(zones.free), has_promises_(zones.has_promises) {
    for (Zone& zone : node_.zones) {
      turn(zone.available);
      turn(zone.allocatable);
    }
    for (Amounts& free : free_) {
      turn(free);
      free_cpu_.push_back(free.get(kCpu));
    }
  }

  FreeZones zones() const {
    return {node_, free_, free_cpu_, has_promises_, zones_.has_cpus, zones_.is_stale, zones_.is_silent};
  }

 private:
  static void turn(Amounts& amounts) { amounts.set(kCpu, amounts.get(kIsolatedCpu)); }

  const FreeZones& zones_;
  NodeZones node_;
  std::vector<Amounts> free_;
  std::vector<std::int64_t> free_cpu_;
  const std::vector<bool>& has_promises_;
};

/// A node with less.
class ReducedView {
 public:
  ReducedView(const FreeZones& zones, const std::vector<Amounts>& taken) : zones_(zones), free_(zones.free) {
    const bool any = std::any_of(taken.begin(), taken.end(), [](const Amounts& amounts) { return !amounts.empty(); });
    for (std::size_t i = 0; i < free_.size(); ++i) {
      for (const Ask& ask : taken[i].asks()) free_[i].add(ask.resource, -ask.amount);
      // Where a pod's containers share their zones, they do so whatever their CPUs are.
      if (any && taken[i].empty() && zones.node.is_pod_scope) free_[i] = {};
      free_cpu_.push_back(free_[i].get(kCpu));
    }
  }

  FreeZones zones() const {
    return {zones_.node, free_, free_cpu_, zones_.has_promises, zones_.has_cpus, zones_.is_stale, zones_.is_silent};
  }

 private:
  const FreeZones& zones_;
  std::vector<Amounts> free_;
  std::vector<std::int64_t> free_cpu_;
};

/// Chooses for containers of which some have, or may have, isolated CPUs.
class SourceChooser {
 public:
  SourceChooser(const FreeZones& zones, const Demand& demand, const CpuSources& sources)
      : zones_(zones), isolated_view_(zones), demand_(demand), sources_(sources), is_isolated_(sources.size(), false) {}

  Result<Choice> choose() {
    for (std::size_t i = 0; i < sources_.size(); ++i) is_isolated_[i] = sources_[i] == CpuSource::kIsolated;
    Result<Choice> isolated = choose_isolated();
    if (!isolated) return of_isolated(isolated.error());
    // As they are created: each has isolated CPUs if there is room.
    std::optional<Error> short_of;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i] != CpuSource::kPreferIsolated) continue;
      is_isolated_[i] = true;
      Result<Choice> with_it = choose_isolated();
      is_isolated_[i] = with_it.has_value();
      if (with_it) {
        isolated = std::move(with_it);
      } else {
        short_of = of_isolated(with_it.error());
      }
    }
    const ReducedView left(zones_, isolated->taken);
    const Result<Choice> of_pool = choose_some(left.zones(), part(false));
    if (!of_pool) {
      const auto is_for_now = [](const Error& error) { return error.message.ends_with(kNotNow); };
      return short_of && is_for_now(*short_of) && !is_for_now(of_pool.error()) ? *short_of : of_pool.error();
    }
    return merged(*std::move(isolated), *of_pool);
  }

 private:
  Demand part(bool isolated) const {
    Demand some = demand_;
    some.containers.clear();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i] && is_isolated_[i] == isolated) some.containers.push_back(demand_.containers[i]);
    }
    return some;
  }

  static Result<Choice> choose_some(const FreeZones& zones, const Demand& some) {
    if (!some.containers.empty()) return choose_among_alike(zones, some);
    Choice none;
    none.taken.resize(zones.free.size());
    return none;
  }

  Result<Choice> choose_isolated() const {
    Result<Choice> choice = choose_some(isolated_view_.zones(), part(true));
    if (choice) {
      for (Amounts& taken : choice->taken) taken = as_isolated(taken);
    }
    return choice;
  }

  static Error of_isolated(const Error& error) {
    return {error.code, "of the CPUs that the kernel isolates: " + error.message};
  }

  Choice merged(Choice isolated, const Choice& of_pool) const {
    Choice all;
    all.taken = std::move(isolated.taken);
    for (std::size_t i = 0; i < all.taken.size(); ++i) all.taken[i].add(of_pool.taken[i]);
    std::size_t next_isolated = 0;
    std::size_t next_of_pool = 0;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i]) continue;
      all.containers.push_back(is_isolated_[i] ? isolated.containers[next_isolated++]
                                               : of_pool.containers[next_of_pool++]);
      if (sources_[i] == CpuSource::kPreferIsolated && !is_isolated_[i])
        all.of_pool.push_back(demand_.containers[i].name);
    }
    all.fit = isolated.containers.empty() ? of_pool.fit : isolated.fit;
    if (isolated.containers.empty() || of_pool.containers.empty()) return all;
    all.fit.most_zones = std::max(isolated.fit.most_zones, of_pool.fit.most_zones);
    all.fit.preference = isolated.fit.preference + of_pool.fit.preference;
    all.fit.effective = std::min(isolated.fit.effective, of_pool.fit.effective);
    return all;
  }

  const FreeZones& zones_;
  const IsolatedView isolated_view_;
  const Demand& demand_;
  const CpuSources& sources_;
  std::vector<bool> is_isolated_;
};

/// The part of the demand that counts on the node.
struct OnNode {
  explicit OnNode(const FreeZones& zones, const Demand& demand) : sources(cpu_sources(demand, zones.node.rules)) {
    const bool has_isolated = zones.node.publishes(kIsolatedCpu);
    for (std::optional<CpuSource>& source : sources) {
      if (source == CpuSource::kPreferIsolated && !has_isolated) source = CpuSource::kPool;
      counts_all = counts_all && source.has_value();
      counts_any = counts_any || source.has_value();
      is_of_pool = is_of_pool && (!source || source == CpuSource::kPool);
    }
  }

  Demand part_of(const Demand& demand) const {
    Demand part = demand;
    part.containers.clear();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i]) part.containers.push_back(demand.containers[i]);
    }
    return part;
  }

  CpuSources sources;
  bool counts_all = true;
  bool counts_any = false;
  bool is_of_pool = true;
};

/// `look` is asked where all that counts is of the pool, `choose` otherwise. `nothing`: where the pod has no CPUs of
/// its own on the node.
template <class Answer, class Look, class Choose>
Answer look_on_node(const FreeZones& zones, const Demand& demand, const Answer& nothing, Look look, Choose choose) {
  const OnNode here(zones, demand);
  if (!here.counts_any) return nothing;
  if (!here.is_of_pool) {
    if (const Status usable = check_usable(zones); !usable) return usable.error();
    return choose(SourceChooser(zones, demand, here.sources).choose());
  }
  return here.counts_all ? look(zones, demand) : look(zones, here.part_of(demand));
}

}  // namespace

Result<Choice> choose_zones(const FreeZones& zones, const Demand& demand) {
  Choice none;
  none.taken.resize(zones.free.size());
  return look_on_node(zones, demand, Result<Choice>(std::move(none)), &choose_among_alike,
                      [](Result<Choice> choice) { return choice; });
}

Result<Fit> fit_zones(const FreeZones& zones, const Demand& demand) {
  return look_on_node(zones, demand, Result<Fit>(Fit{}), &fit_among_alike, [](const Result<Choice>& choice) {
    return choice ? Result<Fit>(choice->fit) : Result<Fit>(choice.error());
  });
}

Status check_zones(const FreeZones& zones, const Demand& demand) {
  return look_on_node(zones, demand, Status(), &check_among_alike,
                      [](const Result<Choice>& choice) { return choice ? Status() : Status(choice.error()); });
}

}  // namespace topolet::extender
