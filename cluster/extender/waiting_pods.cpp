#include "cluster/extender/waiting_pods.hpp"

namespace topolet::extender {
namespace {

constexpr std::size_t kMostPods = 10'000;
/// Pods on nodes that are looked at together, while calls wait.
constexpr std::size_t kMostLooks = 20'000;

}  // namespace

std::size_t WaitingPods::number_of(std::string_view node) {
  const auto found = numbers_.find(node);
  return found != numbers_.end() ? found->second : numbers_.emplace(node, numbers_.size()).first->second;
}

void WaitingPods::reject(const Demand& demand, const std::vector<std::string_view>& nodes, Time now) {
  if (pods_.empty()) numbers_.clear();
  if (pods_.size() >= kMostPods && !pods_.contains(demand.uid)) return;
  Pod& pod = pods_[demand.uid];
  pod.demand = demand;
  pod.seen = now;
  pod.is_woken = false;
  // A scheduler asks for some of the nodes at a time.
  for (const std::string_view node : nodes) {
    const std::size_t number = number_of(node);
    if (pod.nodes.size() <= number) pod.nodes.resize(numbers_.size());
    pod.nodes[number] = true;
  }
}

std::optional<std::string> WaitingPods::find_fit(const ZoneBook& book, std::map<std::string, Growth>& grown, Time now) {
  std::erase_if(pods_, [now](const auto& entry) { return now - entry.second.seen > kLongest; });
  for (std::size_t looks = 0; !grown.empty() && looks < kMostLooks; looks += pods_.size() + 1) {
    const auto grown_node = grown.extract(grown.begin());
    const std::string& node = grown_node.key();
    const bool is_new = grown_node.mapped() == Growth::kNew;
    const auto number = numbers_.find(node);
    if (number == numbers_.end() && !is_new) continue;
    for (const auto& [uid, pod] : pods_) {
      const bool was_asked = is_new || (number->second < pod.nodes.size() && pod.nodes[number->second]);
      if (!pod.is_woken && was_asked && book.check(node, pod.demand)) return node;
    }
  }
  return std::nullopt;
}

void WaitingPods::note_woken() {
  for (auto& [uid, pod] : pods_) pod.is_woken = true;
}

}  // namespace topolet::extender
