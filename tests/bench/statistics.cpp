#include "tests/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

namespace topolet::bench {
namespace {

constexpr int kDraws = 2000;

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto place = values.begin() + std::lround(fraction * last);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

Interval median_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators,
                      std::uint64_t seed) {
  std::vector<double> ratios = numerators;
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= denominators[i];
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> place(0, ratios.size() - 1);
  std::vector<double> medians;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> drawn(ratios.size());
    std::generate(drawn.begin(), drawn.end(), [&] { return ratios[place(random)]; });
    medians.push_back(median(std::move(drawn)));
  }
  return {.low = quantile(medians, 0.025), .middle = median(ratios), .high = quantile(medians, 0.975)};
}

}  // namespace topolet::bench
