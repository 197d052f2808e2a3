// The figures of all ways for one kind of load, for people and for programs.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/statistics.hpp"

namespace topolet::bench {

/// The figures of one way.
struct WayFigures {
  std::string way;
  bool has_process = false;  ///< somebody stands between the client and the runtime
  /// The latencies of all calls, by method.
  std::map<std::string, std::vector<double>> latencies_us = {};
  /// One entry a round: "p50_us METHOD", "cpu_us", and what else a section measures.
  std::map<std::string, std::vector<double>> rounds = {};

  void add_latencies(const std::string& method, const std::vector<double>& round_us);
};

/// All ways that took part, the direct one first, under one load.
struct Comparison {
  std::string title;
  nlohmann::json key;  ///< what the title says, for programs
  std::vector<WayFigures> ways = {};

  WayFigures& of(const std::string& way, bool has_process);
  const WayFigures* find(const std::string& way) const;
};

struct Ratio {
  std::string way;
  std::string to;
  std::string figure;
  Interval interval;
};

/// Returns, for each round, the latency that the way adds to the direct way's median of the method. As many entries as
/// both have.
std::vector<double> added_us(const Comparison& comparison, const WayFigures& way, const std::string& method);
/// topolet's ways over those of others: the latency that they add to the method, and these figures of the rounds.
std::vector<Ratio> ratios(const Comparison& comparison, const std::string& method,
                          const std::vector<std::string>& figures, std::uint64_t seed);

/// A table: p50, p99 and added p50 of the method, CPU time, memory.
void print_calls(const Comparison& comparison, const std::string& method);
/// A table: p50 and added p50 of each method, cycles a second, CPU time and writes of a cycle.
void print_cycles(const Comparison& comparison, const std::vector<std::string>& methods);
void print_ratios(const std::vector<Ratio>& ratios);

nlohmann::json to_json(const Comparison& comparison);
nlohmann::json to_json(const std::vector<Ratio>& ratios);

}  // namespace topolet::bench
