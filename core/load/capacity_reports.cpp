#include "core/load/capacity_reports.hpp"

#include <cstdlib>

namespace topolet::load {
namespace {

constexpr std::chrono::seconds kBetweenReports{30};
/// In hundredths of nominal.
constexpr std::int64_t kWorthTelling = 5;

bool is_worth_telling(std::int64_t difference, std::int64_t nominal) {
  return std::abs(difference) * 100 >= nominal * kWorthTelling;
}

}  // namespace

std::vector<CapacityReports::Report> CapacityReports::due(const Sample& sample,
                                                          const std::map<std::uint32_t, CpuSet>& nodes) {
  std::vector<Report> reports;
  if (!sample.load.is_settled()) return reports;
  for (const auto& [node, cpus] : nodes) {
    const auto nominal = static_cast<std::int64_t>(cpus.size()) * 1000;
    const auto measured = recent_load_of(sample.load, node);
    if (!measured || !measured->effective_milli || nominal == 0) continue;
    const auto [known, is_first] =
        told_.try_emplace(node, Told{.milli = nominal, .at = sample.taken_at - kBetweenReports});
    Told& told = known->second;
    if (told.is_nominal) told.milli = nominal;
    const std::int64_t milli = *measured->effective_milli;
    const auto since = sample.taken_at - told.at;
    const bool has_changed = is_worth_telling(milli - told.milli, nominal) && since >= kBetweenReports;
    const bool is_to_be_renewed = !told.is_nominal && since >= kCapacityToldEvery;
    if (!has_changed && !is_to_be_renewed) continue;
    const bool is_nominal = !is_worth_telling(nominal - milli, nominal);
    told = {.milli = is_nominal ? nominal : milli, .at = sample.taken_at, .is_nominal = is_nominal};
    reports.push_back({node, is_nominal ? std::nullopt : std::optional(milli)});
  }
  return reports;
}

}  // namespace topolet::load
