// What the load program measured, for people and for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/bench/statistics.hpp"

namespace topolet::bench {

/// Of one way to the runtime at one concurrency. One entry a round in the vectors over rounds.
struct Measured {
  std::string way;
  bool has_process = false;               ///< somebody stands between the client and the runtime
  std::vector<double> latencies_us = {};  ///< of all calls
  std::vector<double> round_p50_us = {};
  std::vector<double> round_cpu_us = {};  ///< CPU time of that process per call
};

/// All ways, the direct one first, at one concurrency.
struct Level {
  std::size_t concurrency = 1;
  std::size_t calls_per_round = 0;
  std::vector<Measured> ways = {};

  /// `cpu_us`: per call, of the process in between.
  void add_round(const std::string& way, bool has_process, const std::vector<double>& latencies_us, double cpu_us);
};

struct Ratio {
  std::string way;
  std::string to;
  Interval latency;  ///< of what each adds to the direct median
  Interval cpu;
};

/// What each round added to the direct way's median.
std::vector<double> added_us(const Level& level, const Measured& way);
/// topolet's ways over the bare proxy and over the relay.
std::vector<Ratio> ratios(const Level& level, std::uint64_t seed);

void print(const Level& level, std::uint64_t seed);
nlohmann::json to_json(const Level& level, std::uint64_t seed);

}  // namespace topolet::bench
