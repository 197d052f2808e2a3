// The cases of the plugin check. Each runs in a child process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/plugin/host/deprecated_capabilities.hpp"
#include "core/plugin_checker/outcome.hpp"
#include "core/plugin_checker/run_in_child.hpp"

namespace topolet::plugin_checker {

/// The input of a case.
struct CaseInput {
  const std::filesystem::path& file;
  std::uint64_t seed;
  std::uint32_t requests;
  const Progress& progress;
  const plugin::DeprecatedCapabilities& deprecated;
  /// Of a case that runs in two processes, which of them this is.
  enum class Process : std::uint8_t { kFirst, kOther };
  Process process = Process::kFirst;
};

struct Case {
  enum class Needs : std::uint8_t { kFile, kLoaded, kCreated };
  std::string name;
  std::string what;  ///< what holds if it passes
  Needs needs = Needs::kCreated;
  std::function<Outcome(const CaseInput& input)> run;
  /// A case that runs in two processes passes with its answers as the note, which must be the same.
  enum class Runs : std::uint8_t { kInOneProcess, kInTwoProcesses };
  Runs runs = Runs::kInOneProcess;
};

/// The one that is about the processes that a plugin starts. Whoever runs it judges them.
inline constexpr const char* kForkCase = "fork";

/// Loading, options, capabilities, what an instance costs.
std::vector<Case> load_cases();
/// Returns the cases about a plugin's answers.
std::vector<Case> answer_cases();
/// Returns the cases about what an instance leaves to the next one.
std::vector<Case> state_cases();
/// Returns the cases about what a plugin must leave alone: the process, its output, others' secrets.
std::vector<Case> neighbourhood_cases();

}  // namespace topolet::plugin_checker
