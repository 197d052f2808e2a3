#include "tests/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

namespace topolet::bench {
namespace {

constexpr int kDraws = 2000;

Interval median_interval(const std::vector<double>& values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> place(0, values.size() - 1);
  std::vector<double> medians;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> drawn(values.size());
    std::generate(drawn.begin(), drawn.end(), [&] { return values[place(random)]; });
    medians.push_back(median(std::move(drawn)));
  }
  return {.low = quantile(medians, 0.025), .middle = median(values), .high = quantile(medians, 0.975)};
}

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
  return median_interval(ratios, seed);
}

Interval median_difference(const std::vector<double>& values, const std::vector<double>& others, std::uint64_t seed) {
  std::vector<double> differences = values;
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= others[i];
  return median_interval(differences, seed);
}

}  // namespace topolet::bench
