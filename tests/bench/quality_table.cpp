#include "tests/bench/quality_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/bench/quality_counts.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kMachineWidth = 16;
constexpr std::size_t kPodsWidth = 29;
constexpr std::size_t kShareWidth = 12;

constexpr std::size_t kSettingWidth = 19;

std::vector<double> values_of(const std::vector<Figures>& by_seed, std::size_t place) {
  std::vector<double> values;
  for (const Figures& figures : by_seed) values.push_back(figures[place].value);
  return values;
}

std::string cell(const std::vector<Figures>& by_seed, std::size_t place) {
  const MeanAndSpread figure = mean_and_spread(values_of(by_seed, place));
  if (std::isnan(figure.mean)) return "-";
  if (by_seed.front()[place].is_count) return fmt::format("{:.{}f}", figure.mean, figure.mean < 100 ? 1 : 0);
  return fmt::format("{:.3f} ±{:.3f}", figure.mean, figure.spread);
}

std::size_t width_of(const Figure& figure) {
  return std::max(figure.name.size(), figure.is_count ? std::size_t{0} : kShareWidth);
}

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
    if (!scene.setting.empty()) fmt::print("  {:{}}", "setting", kSettingWidth);
    for (const Figure& figure : first) {
      if (figure.name != kLostVotes) fmt::print("  {:>{}}", figure.name, width_of(figure));
    }
    fmt::print("\n");
    has_head_ = true;
  }
  print_name(scene);
  std::string lost_votes;
  for (std::size_t place = 0; place < first.size(); ++place) {
    std::string text = cell(by_seed, place);
    if (first[place].name != kLostVotes) {
      fmt::print("  {:>{}}", text, width_of(first[place]));
    } else if (mean_and_spread(values_of(by_seed, place)).mean > 0) {
      lost_votes = std::move(text);
    }
  }
  fmt::print("\n");
  if (!lost_votes.empty()) fmt::print("  {} pods were placed without the vote of a plugin\n", lost_votes);
  for (const Figures& figures : by_seed) {
    for (const Figure& figure : figures) {
      for (const std::string& note : figure.notes) fmt::print("  {}\n", note);
    }
  }
  std::fflush(stdout);
}

void TablePrinter::print_name(const Scene& scene) {
  fmt::print("{:{}}  {:{}}  {:>3}%", scene.machine_name, kMachineWidth, scene.pods_name, kPodsWidth,
             scene.churn.fill_percent);
  if (!scene.setting.empty()) fmt::print("  {:{}}", scene.setting, kSettingWidth);
}

void TablePrinter::print_left_out(const Scene& scene, const std::string& why) {
  print_name(scene);
  fmt::print("  left out: {}\n", why);
}

nlohmann::ordered_json to_json(const Scene& scene, const std::vector<Figures>& by_seed) {
  nlohmann::ordered_json json{{"name", scene.machine_name}, {"machine", scene.machine.topology},
                              {"pods", scene.pods_name},    {"fill_percent", scene.churn.fill_percent},
                              {"setting", scene.setting},   {"figures", nlohmann::ordered_json::object()}};
  for (std::size_t place = 0; place < by_seed.front().size(); ++place) {
    const std::vector<double> values = values_of(by_seed, place);
    const MeanAndSpread figure = mean_and_spread(values);
    json["figures"][by_seed.front()[place].name] = {
        {"mean", figure.mean}, {"spread", figure.spread}, {"churns", values}};
  }
  return json;
}

}  // namespace topolet::bench
