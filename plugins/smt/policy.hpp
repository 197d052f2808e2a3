// Decides who may run on the sibling threads of a container's CPUs: nobody, or only containers that disturb it little.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/smt/options.hpp"
#include "plugins/smt/use_history.hpp"

namespace topolet::smt {

using sdk::Verdict;

struct PickAnswer {
  sdk::Set narrow;  ///< take CPUs of this set only; empty for no restriction
  sdk::Set withhold;
  std::string reason;
  std::string unmet;  ///< a goal that cannot be met, and why
};

/// One thread at a time.
class Policy {
 public:
  explicit Policy(const PolicyOptions& options, const sdk::Host& host = sdk::Host(nullptr))
      : options_(options), history_(host) {
    if (options.pair == Pair::kMeasured) history_.begin();
  }

  static constexpr std::array<topolet_str, 2> kAnnotations = {
      {sdk::borrow(kSmtAnnotation), sdk::borrow(kCpuProfileAnnotation)}};
  static constexpr std::array<topolet_kv, 1> kTakingAnnotations = {
      {{sdk::borrow(kSmtAnnotation), sdk::borrow(kIsolate)}}};

  /// One verdict per candidate, or none at all. A candidate where an isolated container can be isolated gets 100, any
  /// other 0; heavy and light containers see README.md. Where all candidates get the same score it abstains on all.
  /// Candidates without enough whole cores for numa.full-pcpus-only are rejected while another has them, and all of
  /// them are if the request would have to be rounded up.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// On machines with many nodes, node sets where a container can be isolated, or its request be rounded up, if that
  /// takes several nodes.
  void propose(const topolet_request& request, sdk::Proposals& proposals) const;

  /// Chooses CPUs; in the review, the siblings of those that were chosen, which stay idle. Orders nothing.
  PickAnswer pick(const topolet_pick_request& picking) const;

  /// It has the host measure with pair = measured.
  topolet_reads reads() const {
    return {sizeof(topolet_reads), options_.pair == Pair::kMeasured ? TOPOLET_READS_LOAD : 0, {}, {}};
  }
  /// Where nothing is to be learned, as seldom as there are ticks.
  std::uint32_t interval_ms() const { return options_.pair == Pair::kMeasured ? kLearnEveryMs : TOPOLET_TICK_MAX_MS; }
  void tick(const topolet_tick_request& request, sdk::Wishes& wishes);
  /// Notes what the container counts as, where that is by measurement.
  void adjust(const topolet_adjust_request& asked, sdk::Adjustments& adjustments) const;

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;

 private:
  const PolicyOptions options_;
  UseHistory history_;
};

}  // namespace topolet::smt
