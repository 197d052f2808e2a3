// Turns what a recorder is told into lines, and keeps what the next file has to begin with.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/result.hpp"
#include "core/config/config_text.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/replay/json_values.hpp"
#include "core/replay/ledger_lines.hpp"
#include "core/replay/policy_answers.hpp"
#include "core/replay/record_file.hpp"
#include "core/replay/recorded_names.hpp"
#include "core/replay/state_access.hpp"

namespace topolet::replay {

/// A configuration by its number in the audit.
struct RecordedSetup {
  std::int64_t number = 0;
  std::vector<config::ConfigEntry> entries;
  RecordedNames names = {};  ///< that its plugins read
};

/// When something happened.
struct Moment {
  std::chrono::milliseconds wall{};    ///< since 1970
  std::chrono::milliseconds steady{};  ///< as plugins are told it in their ticks
};

/// Every function appends lines, and fails as RecordFile does. One thread.
class RecordWriter {
 public:
  struct Options {
    std::uint64_t max_bytes = 0;  ///< of a file: then the next one begins
    std::string version;          ///< topolet's
  };
  RecordWriter(RecordFile file, Options options) : file_(std::move(file)), options_(std::move(options)) {}

  Status begin(const Moment& at, std::shared_ptr<const topology::Topology> topology);
  /// It is in force when a decision or anything else is made with it.
  Status use_setup(const Moment& at, std::shared_ptr<const RecordedSetup> setup);
  Status add_ledger(const Moment& at, const placement::LedgerSnapshot& ledger);
  Status add_decision(const Moment& at, const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                      const NotedDecision& made);
  Status add_event(const Moment& at, const plugin::ContainerEvent& container_event);
  /// `woken`: the plugins that wanted it.
  Status add_tick(const Moment& at, const plugin::TickSnapshot& seen, const std::vector<plugin::MoveRequest>& moves,
                  const std::vector<std::string>& woken);
  Status add_state(const Moment& at, const StateAccess& access);
  /// Adds an operation of a kind that `topolet simulate` knows, with its outcome. Annotations that nobody reads are
  /// left out; a create has the environment that the decision about it read.
  Status add_operation(const Moment& at, const placement::ContainerKey& key, Json line);

 private:
  using CandidateKey = std::tuple<topology::DomainKind, bool, NodeSet::Words, CpuSet::Words, std::uint32_t>;

  Status append(const Moment& at, Json line);
  RecordedNames names() const { return setup_ ? setup_->names : RecordedNames(); }
  Status write_head(const Moment& at, bool continues);
  Status see_machine(const Moment& at, const std::shared_ptr<const topology::Topology>& topology);
  Status see_rules(const Moment& at, const placement::PlacementRules& rules);
  Status see_load(const Moment& at, const std::shared_ptr<const load::Load>& load);
  void add_candidates(const std::vector<placement::Candidate>& candidates, Json& line);

  RecordFile file_;
  const Options options_;
  bool writes_head_ = false;

  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const RecordedSetup> setup_;  ///< null: none is known yet
  std::optional<placement::PlacementRules> rules_;
  load::Load load_;                           ///< what this file tells of it
  std::map<std::string, KnownState> states_;  ///< by plugin
  LedgerWriter ledger_;
  std::map<CandidateKey, std::uint64_t> candidates_;  ///< by what they are, those that this file has so far
  std::vector<placement::Candidate> last_candidates_;
  std::string last_positions_;
  std::map<placement::ContainerKey, Json> env_;  ///< of creates that were decided, until their operation comes
};

}  // namespace topolet::replay
