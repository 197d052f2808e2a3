// Rounds of short slices, in which the ways take turns in a shuffled order: what else the machine does hits all of
// them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <vector>

namespace topolet::bench {

inline constexpr std::size_t kFewestRounds = 3;

/// Calls `round` until the time is over, and at least three times; once if there is no time at all.
template <class Round>
void run_rounds(double seconds, Round round) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const std::size_t fewest = seconds > 0 ? kFewestRounds : 1;
  for (std::size_t i = 0; i < fewest || std::chrono::steady_clock::now() < end; ++i) round();
}

/// Calls `run` `slices` times for each of `values`, in turns of shuffled order.
template <class Value, class Run>
void run_in_turns(std::vector<Value>& values, std::size_t slices, std::mt19937_64& random, Run run) {
  std::vector<Value*> order;
  for (Value& value : values) order.push_back(&value);
  for (std::size_t slice = 0; slice < slices; ++slice) {
    std::shuffle(order.begin(), order.end(), random);
    for (Value* value : order) run(*value);
  }
}

}  // namespace topolet::bench
