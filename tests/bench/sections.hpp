// The sections of daemon_load. Each prints tables and returns the same as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/bench/ways.hpp"

namespace topolet::bench {

struct SectionOptions {
  Topoletd topoletd;
  std::vector<Peer> peers;
  double seconds = 0;  ///< for each of the sections calls, creates and neighbours; at least three rounds
  std::uint64_t seed = 1;
  std::vector<std::size_t> concurrency;
  std::vector<std::size_t> containers;  ///< how many are known, for calls; in rising order
  std::size_t calls = 0;                ///< in a slice
  std::size_t cycles = 0;               ///< the rest is for memory: containers that come and go, in all
  std::size_t calls_at_once = 0;
  std::size_t big_messages = 0;
  double idle_seconds = 0;  ///< before memory must be back
  std::size_t starts = 0;   ///< for start
  std::string containerd;   ///< for containerd: its socket, in a directory that scripts/private-runtime made
};

nlohmann::json measure_calls(const SectionOptions& options);
nlohmann::json measure_creates(const SectionOptions& options);
nlohmann::json measure_neighbours(const SectionOptions& options);
nlohmann::json measure_memory(const SectionOptions& options);
nlohmann::json measure_start(const SectionOptions& options);
/// With a real containerd. topoletd has this machine, whatever the options say.
nlohmann::json measure_containerd(const SectionOptions& options);

}  // namespace topolet::bench
