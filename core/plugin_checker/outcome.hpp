// The outcome of a case of the plugin check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace topolet::plugin_checker {

/// The expected and the actual behaviour.
struct Mismatch {
  std::string expected;
  std::string actual;
};

/// Nothing if all is well.
using MaybeMismatch = std::optional<Mismatch>;

struct Outcome {
  enum class Kind : std::uint8_t { kPassed, kWarned, kFailed, kSkipped };
  Kind kind = Kind::kPassed;
  std::string note = {};       ///< for people; of a failure: nothing
  std::string expected = {};   ///< of a failure
  std::string actual = {};     ///< of a failure
  std::string arguments = {};  ///< of a failure: what to add to the command line to see just it again
  /// Besides, of the processes that the plugin started: what it must not do, and otherwise that there were some.
  MaybeMismatch process_mismatch = {};
  std::string process_note = {};

  static Outcome passed(std::string note = {}) { return {Kind::kPassed, std::move(note)}; }
  static Outcome warned(std::string note) { return {Kind::kWarned, std::move(note)}; }
  static Outcome skipped(std::string why) { return {Kind::kSkipped, std::move(why)}; }
  static Outcome failed(Mismatch mismatch) {
    return {Kind::kFailed, {}, std::move(mismatch.expected), std::move(mismatch.actual)};
  }
};

}  // namespace topolet::plugin_checker
