#include "tests/bench/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace topolet::bench {
namespace {

/// The median over the rounds; "-" where it was not measured.
std::string shown(const WayFigures& way, const std::string& figure, int digits) {
  const auto found = way.rounds.find(figure);
  return found == way.rounds.end() ? "-" : fmt::format("{:.{}f}", median(found->second), digits);
}

std::string shown_added(const Comparison& comparison, const WayFigures& way, const std::string& method) {
  return way.has_process ? fmt::format("{:+.0f}", median(added_us(comparison, way, method))) : "";
}

nlohmann::json to_json(const Interval& interval) {
  return {{"low", interval.low}, {"middle", interval.middle}, {"high", interval.high}};
}

nlohmann::json to_json(const Comparison& comparison, const WayFigures& way) {
  nlohmann::json calls = nlohmann::json::object();
  for (const auto& [method, latencies_us] : way.latencies_us) {
    calls[method] = {{"p50_us", quantile(latencies_us, 0.5)}, {"p99_us", quantile(latencies_us, 0.99)}};
    if (way.has_process) calls[method]["added_p50_us"] = median(added_us(comparison, way, method));
  }
  nlohmann::json medians = nlohmann::json::object();
  for (const auto& [figure, values] : way.rounds) medians[figure] = median(values);
  return {{"way", way.way}, {"calls", calls}, {"medians", medians}, {"rounds", way.rounds}};
}

Ratio ratio(const std::string& way, const std::string& to, const std::string& figure, std::vector<double> numerators,
            std::vector<double> denominators, std::uint64_t seed) {
  const std::size_t both = std::min(numerators.size(), denominators.size());
  numerators.resize(both);
  denominators.resize(both);
  return {.way = way, .to = to, .figure = figure, .interval = median_ratio(numerators, denominators, seed)};
}

}  // namespace

void WayFigures::add_latencies(const std::string& method, const std::vector<double>& round_us) {
  if (round_us.empty()) return;
  rounds["p50_us " + method].push_back(median(round_us));
  std::vector<double>& all = latencies_us[method];
  all.insert(all.end(), round_us.begin(), round_us.end());
}

WayFigures& Comparison::of(const std::string& way, bool has_process) {
  const auto found = std::find_if(ways.begin(), ways.end(), [&](const WayFigures& one) { return one.way == way; });
  return found != ways.end() ? *found : ways.emplace_back(WayFigures{.way = way, .has_process = has_process});
}

const WayFigures* Comparison::find(const std::string& way) const {
  const auto found = std::find_if(ways.begin(), ways.end(), [&](const WayFigures& one) { return one.way == way; });
  return found != ways.end() ? &*found : nullptr;
}

std::vector<double> added_us(const Comparison& comparison, const WayFigures& way, const std::string& method) {
  const std::string figure = "p50_us " + method;
  std::vector<double> added = way.rounds.at(figure);
  const std::vector<double>& direct = comparison.ways.front().rounds.at(figure);
  added.resize(std::min(added.size(), direct.size()));
  for (std::size_t i = 0; i < added.size(); ++i) added[i] -= direct[i];
  return added;
}

std::vector<Ratio> ratios(const Comparison& comparison, const std::string& method,
                          const std::vector<std::string>& figures, std::uint64_t seed) {
  std::vector<Ratio> all;
  for (const WayFigures& way : comparison.ways) {
    if (!way.way.starts_with("topolet")) continue;
    for (const WayFigures& other : comparison.ways) {
      if (!other.has_process || other.way.starts_with("topolet")) continue;
      all.push_back(ratio(way.way, other.way, "added latency of " + method, added_us(comparison, way, method),
                          added_us(comparison, other, method), seed));
      for (const std::string& figure : figures) {
        all.push_back(ratio(way.way, other.way, figure, way.rounds.at(figure), other.rounds.at(figure), seed));
      }
    }
  }
  return all;
}

void print_calls(const Comparison& comparison, const std::string& method) {
  fmt::print("\n{}, {} rounds\n{:<14} {:>8} {:>8} {:>13} {:>12} {:>8}\n", comparison.title,
             comparison.ways.front().rounds.begin()->second.size(), "way", "p50 µs", "p99 µs", "added p50 µs",
             "CPU µs/call", "MiB");
  for (const WayFigures& way : comparison.ways) {
    const std::vector<double>& all = way.latencies_us.at(method);
    fmt::print("{:<14} {:>8.0f} {:>8.0f} {:>13} {:>12} {:>8}\n", way.way, quantile(all, 0.5), quantile(all, 0.99),
               shown_added(comparison, way, method), shown(way, "cpu_us", 1), shown(way, "rss_mib", 1));
  }
}

void print_cycles(const Comparison& comparison, const std::vector<std::string>& methods) {
  fmt::print("\n{}, {} rounds; p50 µs (added)\n{:<14}", comparison.title,
             comparison.ways.front().rounds.begin()->second.size(), "way");
  for (const std::string& method : methods) fmt::print(" {:>16}", method);
  fmt::print(" {:>9} {:>13} {:>13} {:>12}\n", "cycles/s", "CPU ms/cycle", "writes/cycle", "KiB/cycle");
  for (const WayFigures& way : comparison.ways) {
    fmt::print("{:<14}", way.way);
    for (const std::string& method : methods) {
      const std::string added = shown_added(comparison, way, method);
      fmt::print(" {:>16}", fmt::format("{:.0f}{}", quantile(way.latencies_us.at(method), 0.5),
                                        added.empty() ? "" : " (" + added + ")"));
    }
    fmt::print(" {:>9} {:>13} {:>13} {:>12}\n", shown(way, "cycles_per_s", 0), shown(way, "cpu_ms", 3),
               shown(way, "writes", 1), shown(way, "written_kib", 1));
  }
}

void print_ratios(const std::vector<Ratio>& ratios) {
  for (const Ratio& one : ratios) {
    fmt::print("{:<58} {:.2f} [{:.2f}, {:.2f}]\n", fmt::format("{} / {}, {}", one.way, one.to, one.figure),
               one.interval.middle, one.interval.low, one.interval.high);
  }
}

nlohmann::json to_json(const Comparison& comparison) {
  nlohmann::json json = comparison.key;
  json["ways"] = nlohmann::json::array();
  for (const WayFigures& way : comparison.ways) json["ways"].push_back(to_json(comparison, way));
  return json;
}

nlohmann::json to_json(const std::vector<Ratio>& ratios) {
  nlohmann::json json = nlohmann::json::array();
  for (const Ratio& one : ratios) {
    json.push_back({{"way", one.way}, {"to", one.to}, {"figure", one.figure}, {"ratio", to_json(one.interval)}});
  }
  return json;
}

}  // namespace topolet::bench
