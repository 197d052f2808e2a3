#include "tests/bench/load_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace topolet::bench {
namespace {

const Measured& find(const Level& level, const std::string& name) {
  const auto way = std::find_if(level.ways.begin(), level.ways.end(),
                                [&](const Measured& candidate) { return candidate.way == name; });
  if (way == level.ways.end()) throw std::logic_error("no way is called " + name);
  return *way;
}

Ratio ratio(const Level& level, const Measured& way, const std::string& to, std::uint64_t seed) {
  const Measured& other = find(level, to);
  return {.way = way.way,
          .to = to,
          .latency = median_ratio(added_us(level, way), added_us(level, other), seed),
          .cpu = median_ratio(way.round_cpu_us, other.round_cpu_us, seed)};
}

std::string shown(const Interval& interval) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", interval.middle, interval.low, interval.high);
}

nlohmann::json to_json(const Interval& interval) {
  return {{"low", interval.low}, {"middle", interval.middle}, {"high", interval.high}};
}

nlohmann::json to_json(const Level& level, const Measured& way) {
  nlohmann::json json = {
      {"way", way.way}, {"p50_us", quantile(way.latencies_us, 0.5)}, {"p99_us", quantile(way.latencies_us, 0.99)}};
  if (!way.has_process) return json;
  json["added_p50_us"] = median(added_us(level, way));
  json["round_added_p50_us"] = added_us(level, way);
  json["cpu_us_per_call"] = median(way.round_cpu_us);
  json["round_cpu_us_per_call"] = way.round_cpu_us;
  return json;
}

}  // namespace

void Level::add_round(const std::string& name, bool has_process, const std::vector<double>& latencies_us,
                      double cpu_us) {
  auto way = std::find_if(ways.begin(), ways.end(), [&](const Measured& candidate) { return candidate.way == name; });
  if (way == ways.end()) way = ways.insert(way, {.way = name, .has_process = has_process});
  way->round_p50_us.push_back(median(latencies_us));
  way->round_cpu_us.push_back(cpu_us);
  way->latencies_us.insert(way->latencies_us.end(), latencies_us.begin(), latencies_us.end());
}

std::vector<double> added_us(const Level& level, const Measured& way) {
  std::vector<double> added = way.round_p50_us;
  for (std::size_t i = 0; i < added.size(); ++i) added[i] -= level.ways.front().round_p50_us[i];
  return added;
}

std::vector<Ratio> ratios(const Level& level, std::uint64_t seed) {
  std::vector<Ratio> all;
  for (const Measured& way : level.ways) {
    if (!way.way.starts_with("topolet")) continue;
    for (const char* to : {"bare", "relay"}) all.push_back(ratio(level, way, to, seed));
  }
  return all;
}

void print(const Level& level, std::uint64_t seed) {
  fmt::print("\nconcurrency {}: {} rounds of {} calls each way\n", level.concurrency,
             level.ways.front().round_p50_us.size(), level.calls_per_round);
  fmt::print("{:<17} {:>8} {:>8} {:>13} {:>12}\n", "way", "p50 µs", "p99 µs", "added p50 µs", "CPU µs/call");
  for (const Measured& way : level.ways) {
    fmt::print("{:<17} {:>8.0f} {:>8.0f}", way.way, quantile(way.latencies_us, 0.5), quantile(way.latencies_us, 0.99));
    if (way.has_process) fmt::print(" {:>13.1f} {:>12.1f}", median(added_us(level, way)), median(way.round_cpu_us));
    fmt::print("\n");
  }
  fmt::print("{:<25} {:<21} {}\n", "ratio [95 % interval]", "added latency", "CPU");
  for (const Ratio& one : ratios(level, seed)) {
    fmt::print("{:<25} {:<21} {}\n", one.way + " / " + one.to, shown(one.latency), shown(one.cpu));
  }
}

nlohmann::json to_json(const Level& level, std::uint64_t seed) {
  nlohmann::json ways = nlohmann::json::array();
  for (const Measured& way : level.ways) ways.push_back(to_json(level, way));
  nlohmann::json compared = nlohmann::json::array();
  for (const Ratio& one : ratios(level, seed)) {
    compared.push_back(
        {{"way", one.way}, {"to", one.to}, {"added_latency", to_json(one.latency)}, {"cpu", to_json(one.cpu)}});
  }
  return {{"concurrency", level.concurrency},
          {"rounds", level.ways.front().round_p50_us.size()},
          {"calls_per_round", level.calls_per_round},
          {"ways", ways},
          {"ratios", compared}};
}

}  // namespace topolet::bench
