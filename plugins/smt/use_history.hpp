// How much containers of one kind use, by the hour of the day.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace topolet::smt {

constexpr std::uint32_t kLearnEveryMs = 60000;
/// So many measurements, one a minute, are saved together.
constexpr std::int64_t kMeasurementsSaved = 10;
/// A measured value that is older says nothing about now.
constexpr std::int64_t kOldestLoadMs = 5000;
/// So many kinds are remembered, each for so long after it was measured last.
constexpr std::size_t kMostKinds = 1000;
constexpr std::int64_t kRememberedHours = 7 * 24;

/// CPUs that a container has or, where it shares them, requests (one at least), and how much of these it uses.
struct UseOfCpus {
  std::int64_t cpus = 1;
  std::int64_t used_milli = 0;

  std::int32_t permille() const;
};

/// Returns what the container at this position of the ledger uses; nothing if that is not known, or not any more.
std::optional<UseOfCpus> recent_use(const topolet_load* load, const topolet_ledger& ledger, std::size_t position);

/// A day of one kind of container.
struct DayOfUse {
  /// How much of their CPUs they use, in permille, by the hour in UTC; -1: it has not been measured.
  std::array<std::int32_t, 24> permille{};
  std::int64_t last_hour = 0;  ///< in which it was measured, since 1970
};

/// A day as it is saved; nothing for any other text.
std::optional<DayOfUse> parse_day(std::string_view text);
std::string to_text(const DayOfUse& day);

/// Learns from measurements, and keeps what it has learned in the plugin's state: "day/KIND", with kind_of(). Decisions
/// see what is saved only.
class UseHistory {
 public:
  explicit UseHistory(const sdk::Host& host) : host_(host) {}

  /// Reads which kinds are known, before the first tick().
  void begin();
  void tick(const topolet_tick_request& request);
  std::optional<DayOfUse> day_of(const std::string& kind) const;

 private:
  struct NotSaved {
    std::int64_t hour = 0;
    std::int64_t permille = 0;  ///< of all measurements together
    std::int64_t measurements = 0;
  };

  void learn(const std::string& kind, std::int64_t permille, std::int64_t hour);
  void save(const std::string& kind, std::int64_t permille, std::int64_t hour);
  void forget_old(std::int64_t hour);
  void forget(const std::string& kind);

  const sdk::Host host_;
  std::map<std::string, NotSaved> not_saved_;          ///< by kind
  std::map<std::string, std::int64_t> measured_last_;  ///< the hour, of the kinds that are saved
  std::int64_t looked_at_ = 0;                         ///< the hour in which old ones were forgotten last
};

}  // namespace topolet::smt
