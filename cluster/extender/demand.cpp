#include "cluster/extender/demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/own_cpus.hpp"
#include "core/base/pattern.hpp"
#include "core/base/text.hpp"

namespace topolet::extender {
namespace {

using Why = ContainerDemand::Why;

constexpr std::int64_t kMilli = 1000;
constexpr std::size_t kLongestValue = 60;

template <class Word, std::size_t count>
Result<Word> find_word(std::string_view text, const std::array<std::pair<std::string_view, Word>, count>& words) {
  std::string known;
  for (const auto& [name, word] : words) {
    if (name == text) return word;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return Error{Code::kInvalidArgument, fmt::format("'{}' is none of {}", printable(text, kLongestValue), known)};
}

/// Sets `word` from an annotation, if the pod has it.
template <class Word>
Status read_annotation(const api::Pod& pod, const char* name, Result<Word> (*parse)(std::string_view), Word& word) {
  const auto found = pod.annotations.find(name);
  if (found == pod.annotations.end()) return {};
  const Result<Word> parsed = parse(found->second);
  if (!parsed) return Error{Code::kInvalidArgument, fmt::format("annotation {}: {}", name, parsed.error().message)};
  word = *parsed;
  return {};
}

/// The CPU annotations of a pod's containers; empty for those without.
class CpusAnnotations {
 public:
  explicit CpusAnnotations(const api::Pod& pod) : of_pod_(pod.annotations) {
    if (const auto found = pod.annotations.find("topolet.io/containers"); found != pod.annotations.end())
      of_containers_ = nlohmann::json::parse(found->second, nullptr, false);
  }
  /// exclusive, shared or none.
  std::string cpus(const std::string& container) const { return value("cpus", container); }
  ContainerDemand::Isolated isolated(const std::string& container) const {
    const std::string told = value("isolated", container);
    if (told == "require") return ContainerDemand::Isolated::kRequire;
    return told == "prefer" ? ContainerDemand::Isolated::kPrefer : ContainerDemand::Isolated::kNone;
  }

 private:
  std::string value(const std::string& name, const std::string& container) const {
    for (const std::string& key : {name, "topolet.io/" + name}) {
      std::string own = api::text_field(of_containers_, container, key.c_str());
      if (!own.empty()) return own;
    }
    const auto found = of_pod_.find("topolet.io/" + name);
    return found == of_pod_.end() ? "" : found->second;
  }

  const std::map<std::string, std::string>& of_pod_;
  nlohmann::json of_containers_;
};

ContainerDemand::Kind kind_of(api::PodContainer::Kind kind) {
  if (kind == api::PodContainer::Kind::kInit) return ContainerDemand::Kind::kInit;
  return kind == api::PodContainer::Kind::kSidecar ? ContainerDemand::Kind::kSidecar : ContainerDemand::Kind::kMain;
}

std::int64_t whole_cpus(std::int64_t milli) { return (milli + kMilli - 1) / kMilli * kMilli; }

Amounts asks_of(const api::Amounts& requests, const ResourceNames& names) {
  Amounts asks;
  // Resources that no node publishes do not depend on zones.
  const auto ask = [&asks](std::optional<ResourceId> resource, std::int64_t amount) {
    if (resource) asks.set(*resource, std::min(amount, kMostOfAnything));
  };
  ask(kCpu, whole_cpus(std::min(requests.cpu_milli, kMostOfAnything)));
  if (requests.memory_bytes > 0) ask(kMemory, requests.memory_bytes);
  for (const auto& [size, bytes] : requests.huge_page_bytes) {
    if (bytes > 0) ask(names.find("hugepages-" + size), bytes);
  }
  for (const auto& [device, count] : requests.devices) {
    if (count > 0) ask(names.find(device), count);
  }
  return asks;
}

}  // namespace

Result<ZonePolicy> parse_zone_policy(std::string_view text) {
  return find_word<ZonePolicy, 3>(
      text, {{{"single", ZonePolicy::kSingle}, {"fewest", ZonePolicy::kFewest}, {"any", ZonePolicy::kAny}}});
}

Result<ZoneStrategy> parse_zone_strategy(std::string_view text) {
  return find_word<ZoneStrategy, 3>(
      text,
      {{{"packed", ZoneStrategy::kPacked}, {"spread", ZoneStrategy::kSpread}, {"balanced", ZoneStrategy::kBalanced}}});
}

Result<Demand> read_demand(const api::Pod& pod, const ZoneDefaults& defaults, const ResourceNames& names,
                           const std::vector<NodeRules>& known) {
  Demand demand;
  demand.uid = pod.uid;
  demand.name = pod.name;
  demand.name_space = pod.name_space;
  demand.policy = defaults.policy;
  demand.strategy = defaults.strategy;
  if (const Status read = read_annotation(pod, "topolet.io/zone-policy", &parse_zone_policy, demand.policy); !read)
    return read.error();
  if (const Status read = read_annotation(pod, "topolet.io/zone-strategy", &parse_zone_strategy, demand.strategy);
      !read)
    return read.error();
  demand.may_take_more = first_match(defaults.exclusive_namespaces, pod.name_space) != nullptr;
  const CpusAnnotations annotations(pod);
  std::int64_t shared = 0;
  for (const api::PodContainer& container : pod.containers) {
    const std::int64_t cpu = container.requests.cpu_milli;
    if (container.has_ended || cpu <= 0) continue;
    const std::string told = annotations.cpus(container.name);
    const bool is_whole = cpu % kMilli == 0;
    const bool by_default = pod.qos == "guaranteed" && is_whole && told.empty();
    if (!by_default && told != "exclusive") {
      if (container.kind != api::PodContainer::Kind::kInit) shared += std::min(cpu, kMostOfAnything);
      continue;
    }
    const Why by_annotation = is_whole ? Why::kAnnotated : Why::kRoundedUp;
    demand.containers.push_back({container.name, kind_of(container.kind), asks_of(container.requests, names),
                                 by_default ? Why::kDefault : by_annotation, annotations.isolated(container.name)});
  }
  demand.shared_milli = whole_cpus(std::min(shared, kMostOfAnything));
  demand.concerns_zones = has_own_cpus(demand, {}) ||
                          std::any_of(known.begin(), known.end(),
                                      [&demand](const NodeRules& rules) { return has_own_cpus(demand, rules); });
  return demand;
}

}  // namespace topolet::extender
