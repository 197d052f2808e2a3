#include "core/engine/planning/known_load.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/state/reported_capacity.hpp"

namespace topolet::engine {
namespace {

std::shared_ptr<const load::Load> with_told_capacities(std::shared_ptr<const load::Load> measured,
                                                       const Ledger& ledger) {
  const auto& capacities = ledger.reported_capacities();
  const auto is_told = [](const auto& reported) { return !is_measured(reported.second); };
  if (std::none_of(capacities.begin(), capacities.end(), is_told)) return measured;
  auto known = std::make_shared<load::Load>(measured ? *measured : load::Load());
  for (const auto& [node, reported] : capacities) {
    if (is_measured(reported)) continue;
    load::NodeLoad& of_node = known->nodes[node];
    // Nobody has told that.
    if (of_node.age > load::kLongestAge) of_node.used_milli.reset();
    of_node.effective_milli = reported.milli;
    of_node.age = {};
  }
  return known;
}

}  // namespace

std::shared_ptr<const load::Load> known_load(const load::Source& source, const Ledger& ledger) {
  return with_told_capacities(source ? source() : nullptr, ledger);
}

std::shared_ptr<const load::Load> settled_load(const load::Source& source, const Ledger& ledger) {
  std::shared_ptr<const load::Load> measured = source ? source() : nullptr;
  if (measured && !measured->is_settled()) measured = nullptr;
  return with_told_capacities(std::move(measured), ledger);
}

}  // namespace topolet::engine
