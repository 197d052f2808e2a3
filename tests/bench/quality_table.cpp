#include "tests/bench/quality_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace topolet::bench {
namespace {

constexpr std::size_t kMachineWidth = 18;
constexpr std::size_t kPodsWidth = 30;
constexpr std::size_t kLeastWidth = 12;

std::vector<double> values_of(const std::vector<Figures>& by_seed, std::size_t place) {
  std::vector<double> values;
  for (const Figures& figures : by_seed) values.push_back(figures[place].second);
  return values;
}

bool is_count(double value) { return value == std::floor(value) && value > 1; }

std::string cell(const std::vector<double>& values) {
  const MeanAndSpread figure = mean_and_spread(values);
  if (std::isnan(figure.mean)) return "-";
  if (is_count(figure.mean) || std::all_of(values.begin(), values.end(), is_count)) {
    return fmt::format("{:.0f}", figure.mean);
  }
  if (figure.mean == 0) return "0";
  return fmt::format("{:.3f} ±{:.3f}", figure.mean, figure.spread);
}

std::size_t width_of(const std::string& name) { return std::max(name.size(), kLeastWidth); }

}  // namespace

MeanAndSpread mean_and_spread(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    squares += value * value;
    ++count;
  }
  if (count == 0) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double mean = sum / count;
  const double variance = count > 1 ? std::max(0.0, (squares - sum * mean) / (count - 1)) : 0;
  return {mean, std::sqrt(variance)};
}

TablePrinter::TablePrinter(const std::string& title) { fmt::print("{}\n\n", title); }

TablePrinter::~TablePrinter() { std::puts(""); }

void TablePrinter::print(const Scene& scene, const std::vector<Figures>& by_seed) {
  const Figures& first = by_seed.front();
  if (!has_head_) {
    fmt::print("{:{}}  {:{}}  {:>4}", "machine", kMachineWidth, "pods", kPodsWidth, "fill");
    for (const auto& [name, unused] : first) fmt::print("  {:>{}}", name, width_of(name));
    fmt::print("\n");
    has_head_ = true;
  }
  fmt::print("{:{}}  {:{}}  {:>3}%", scene.machine_name, kMachineWidth, scene.pods_name, kPodsWidth,
             scene.churn.fill_percent);
  for (std::size_t place = 0; place < first.size(); ++place) {
    fmt::print("  {:>{}}", cell(values_of(by_seed, place)), width_of(first[place].first));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const Scene& scene, const std::vector<Figures>& by_seed) {
  nlohmann::ordered_json json{{"machine", scene.machine.topology},
                              {"pods", scene.pods_name},
                              {"fill_percent", scene.churn.fill_percent},
                              {"figures", nlohmann::ordered_json::object()}};
  for (std::size_t place = 0; place < by_seed.front().size(); ++place) {
    const std::vector<double> values = values_of(by_seed, place);
    const MeanAndSpread figure = mean_and_spread(values);
    json["figures"][by_seed.front()[place].first] = {
        {"mean", figure.mean}, {"spread", figure.spread}, {"churns", values}};
  }
  return json;
}

}  // namespace topolet::bench
