// Histories of a node, made up by chance, and what is left of them with the daemon killed on the way and without.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/simulate/simulated_daemon.hpp"

namespace topolet::simulate {

struct RestartNode {
  std::string machine;
  std::vector<std::string> flags;
  SimulatedFront front = SimulatedFront::kCri;
};

/// Lines that belong together: a container's pod and its create; an answer that is lost and the time until that is
/// known.
using Step = std::vector<std::string>;
using History = std::vector<Step>;

std::vector<std::string> lines_of(const History& history);

/// The same seed on the same node makes up the same.
History make_history(const RestartNode& node, std::uint64_t seed, int steps);

/// Everything that was seen of a history. Lines are counted without restarts.
struct HistoryResult {
  std::string end;                 ///< who holds what and who runs where at the end, a line each
  std::vector<std::size_t> calls;  ///< by line: how many calls reached the runtime that change something
  std::vector<std::chrono::milliseconds> over_at;  ///< by line
  std::map<std::size_t, std::string>
      overlaps;  ///< by line: who ran on a CPU that another has for itself, at any moment
  /// The same at the end of a line, or on the way where no CPU had gone: for who had to leave that one there may be
  /// nowhere to go before others have moved.
  std::string first_violation;
  /// The daemon was killed where it was to be, and the runtime answers the kubelet's repeat as it would the call.
  bool is_comparable = true;
};
/// By line: how much time passes after it.
using Pauses = std::map<std::size_t, std::chrono::milliseconds>;
/// The options count but for their front, which is the node's.
HistoryResult run_history(const RestartNode& node, const History& history, SimulationOptions options = {},
                          const Pauses& pauses = {});

/// The history with a restart in it, chosen by chance out of all moments there are.
History with_restart(const History& history, const HistoryResult& without, std::uint64_t chance);

/// Returns the differences from the same history without restarts, for people; empty if nothing does.
/// Where a restart takes time, as much passes without it: what is due a second later may be done by the next line.
std::string difference(const RestartNode& node, const History& history, const HistoryResult& with,
                       const HistoryResult& without);
std::string difference(const RestartNode& node, const History& history);

/// As little of the history as still makes a difference, with its last step: until that, what is under way may be.
History minimised(const RestartNode& node, History history);

}  // namespace topolet::simulate
