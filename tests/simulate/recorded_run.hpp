// A simulation that is recorded, and the replay of its record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/replay/replay.hpp"
#include "core/simulate/simulated_daemon.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {

/// The record of one run, which must have ended before it is replayed.
class RecordedRun {
 public:
  explicit RecordedRun(std::uint64_t max_bytes = std::uint64_t{1} << 30U) : max_bytes_(max_bytes) {}

  SimulationOptions options(SimulationOptions others = {}) const {
    others.record = file();
    others.record_bytes = max_bytes_;
    return others;
  }
  std::filesystem::path file() const { return directory_.path() / "record"; }
  std::string text() const { return directory_.read("record"); }
  /// Instead of what was recorded.
  void write(const std::string& text) const { directory_.write("record", text); }

  Result<replay::ReplayResult> try_to_replay(replay::ReplayOptions options = {}) const {
    std::ifstream in(file());
    return replay::replay(in, options);
  }
  replay::ReplayResult replay(replay::ReplayOptions options = {}) const {
    auto replayed = try_to_replay(std::move(options));
    if (!replayed) throw std::runtime_error(replayed.error().message);
    return *std::move(replayed);
  }

 private:
  const TempDir directory_;
  const std::uint64_t max_bytes_;
};

/// For people; empty if there is none.
inline std::string first_difference(const replay::ReplayResult& result) {
  if (!result.first) return "";
  return "line " + std::to_string(result.first->line) + ", " + result.first->container + ": " + result.first->what;
}

}  // namespace topolet::simulate
