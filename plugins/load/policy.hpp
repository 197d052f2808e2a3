// Places containers by what is measured: where CPUs can do much and little is used. See README.md.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstdint>

#include "plugins/load/classes.hpp"
#include "plugins/load/node_use.hpp"
#include "plugins/load/options.hpp"
#include "plugins/load/relief.hpp"

namespace topolet::load_policy {

/// Points between a node where nothing is used and one where all is: less than a further node or a device costs
/// elsewhere, and more than the strategies differ by.
constexpr std::int32_t kMostPoints = 12;
/// Of these, what is at stake where CPUs beside busy ones would have to be taken.
constexpr std::int32_t kBesideBusyPoints = 6;

class Policy {
 public:
  static constexpr std::string_view kVendor = "topolet";
  static constexpr std::string_view kDescription = "Places containers by measured load.";
  static constexpr std::array<topolet_str, 1> kAnnotations = {{TOPOLET_STR("class")}};
  static constexpr std::array<topolet_kv, 2> kTakingAnnotations = {
      {{TOPOLET_STR("class"), TOPOLET_STR("LSE")}, {TOPOLET_STR("class"), TOPOLET_STR("LSR")}}};
  static constexpr std::array<topolet_kv, 5> kCodes = {{
      {TOPOLET_STR("not-measured"), TOPOLET_STR("The load is not measured, or not recently, or not for long enough.")},
      {TOPOLET_STR("used"), TOPOLET_STR("The score says how much of what the CPUs can do is used.")},
      {TOPOLET_STR("beside-busy"), TOPOLET_STR("On the same cores other containers keep their CPUs busy.")},
      {TOPOLET_STR("siblings-idle"), TOPOLET_STR("Siblings are kept idle for a container of class LSE.")},
      {TOPOLET_STR("class"), TOPOLET_STR("What the pod says of its class does not count.")},
  }};

  Policy(const sdk::Options& options, const sdk::Host& host);

  /// It has the host measure.
  topolet_reads reads() const { return {sizeof(topolet_reads), TOPOLET_READS_LOAD, {}, {}}; }
  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& asked, sdk::Picks& picks) const;
  std::uint32_t interval_ms() const { return kTickMs; }
  void tick(const topolet_tick_request& request, sdk::Wishes& wishes) { relief_.tick(request, wishes); }
  void notify(const topolet_event& event) { relief_.notify(event); }

 private:
  void score_shared(const topolet_request& request, const Measured& measured, const std::string& note,
                    sdk::Scores& scores) const;
  void score_exclusive(const topolet_request& request, const Measured& measured, const std::string& note,
                       sdk::Scores& scores) const;
  void keep_off_busy_cores(const topolet_pick_request& asked, sdk::Picks& picks) const;
  void keep_to_whole_cores(const topolet_pick_request& asked, sdk::Picks& picks) const;
  void withhold_siblings(const topolet_pick_request& asked, sdk::Picks& picks) const;

  const PolicyOptions options_;
  Relief relief_;
};

}  // namespace topolet::load_policy
