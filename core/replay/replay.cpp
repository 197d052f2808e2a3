#include "core/replay/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/text.hpp"
#include "core/placement/decide.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/replay/differences.hpp"
#include "core/replay/ledger_lines.hpp"
#include "core/replay/policy_answers.hpp"
#include "core/replay/record_format.hpp"
#include "core/replay/recorded_fields.hpp"
#include "core/replay/replayed_state.hpp"

namespace topolet::replay {
namespace {

/// Votes are lost where they were lost then, not because this machine is slower.
constexpr std::chrono::minutes kDeadline{1};
constexpr std::chrono::hours kDecisionTime{1};

/// The record cannot be replayed here, whatever its lines say.
struct NotReplayable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Json as_written(const Json& value) { return Json::parse(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }

/// The plugins of one configuration, and the time that they are told.
class Policies {
 public:
  Policies() = default;
  ~Policies() = default;
  Policies(const Policies&) = delete;
  Policies& operator=(const Policies&) = delete;

  /// Throws NotReplayable.
  void make(const plugin::LoadedConfig& setup, const std::shared_ptr<store::PluginStateStore>& state,
            const std::shared_ptr<const topology::Topology>& machine) {
    if (const auto mistakes = setup.mistakes(); !mistakes.empty())
      throw NotReplayable(fmt::format("the configuration is not accepted: {}", fmt::join(mistakes, "; ")));
    auto made = plugin::make_votes(setup, make_silent_log(), state, machine);
    if (!made) throw NotReplayable(made.error().message);
    votes_ = *std::move(made);
  }

  NotedDecision decide(const std::shared_ptr<const placement::PolicyRequest>& request,
                       const placement::PlacementRules& rules, const std::vector<PolicyAnswers>& recorded) {
    return thread_.run_as<NotedDecision>(votes_, [request, rules, recorded](const placement::Votes& votes) {
      return decide_again(*request, rules, votes, recorded);
    });
  }

  void publish(std::shared_ptr<const plugin::ContainerEvent> container_event) {
    thread_.publish(votes_, std::move(container_event));
  }

  std::vector<plugin::MoveRequest> tick(const plugin::TickTime& now,
                                        const std::shared_ptr<const plugin::TickSnapshot>& seen,
                                        const std::vector<std::string>& woken) {
    for (const plugin::PluginVote& vote : votes_)
      vote.plugin->set_wants_tick(std::find(woken.begin(), woken.end(), vote.name) != woken.end());
    *now_ = now;
    return thread_.tick(votes_, [seen] { return seen; });
  }

  bool has_abandoned_calls() const { return thread_.has_abandoned_calls(); }

 private:
  static Clock clock_at(const std::shared_ptr<plugin::TickTime>& now) {
    return {.wall = [now] { return now->wall; },
            .steady = [now] { return std::chrono::steady_clock::time_point(now->steady); }};
  }

  const std::shared_ptr<plugin::TickTime> now_ = std::make_shared<plugin::TickTime>();
  std::vector<plugin::PluginVote> votes_;
  plugin::PolicyThread thread_{{.deadline = kDeadline, .decision_time = kDecisionTime, .clock = clock_at(now_)}};
};

class Player {
 public:
  explicit Player(const ReplayOptions& options) : options_(options) {}

  /// Throws what read_json() throws, or NotReplayable.
  void play(std::size_t number, const Json& line) {
    number_ = number;
    const std::string operation = line.at("op").get<std::string>();
    if (operation == op::kRecord) return begin(line);
    if (result_.begins == 0) throw NotReplayable("it does not begin as a record does");
    if (operation == op::kState) return state_->read_line(line);
    if (operation == op::kMachine) return use_machine(line);
    if (operation == op::kRules) return read_json(line.at("rules"), rules_.emplace());
    if (operation == op::kLedger) return read_ledger(line);
    if (operation == op::kMeasured) return read_load(line);
    if (operation == op::kConfiguration) {
      configure(line);
    } else if (operation == op::kDecide) {
      decide(line);
    } else if (operation == op::kEvent) {
      publish(line);
    } else if (operation == op::kTick) {
      tick(line);
    } else {
      if (operation != op::kOutcome) ++result_.operations;
      return;
    }
    state_->forget_answers();
  }

  ReplayResult result() {
    result_.has_abandoned_calls = policies_->has_abandoned_calls();
    return result_;
  }
  ReplayResult& counts() { return result_; }

 private:
  void begin(const Json& line) {
    const auto version = line.at("version").get<std::int64_t>();
    if (version != kRecordVersion) {
      throw NotReplayable(
          fmt::format("it is a record of version {}, written by topolet {}; this topolet reads version {}", version,
                      line.value("topolet", "of an unknown version"), kRecordVersion));
    }
    const bool continues = line.value("continues", false) && result_.begins > 0;
    if (!continues) {
      ++result_.begins;
      has_setup_ = false;
      values_ = Json();
      policies_ = std::make_unique<Policies>();
    }
    state_->clear();
    ledger_.forget();
    candidates_.clear();
    load_.reset();
  }

  /// Null: it is not known any more.
  template <class KeyOf, class Map>
  static void read_changes(const Json& changes, KeyOf key_of, Map& map) {
    for (const auto& [text, value] : changes.items()) {
      const auto key = key_of(text);
      if (value.is_null()) {
        map.erase(key);
      } else {
        map[key] = from_json<typename Map::mapped_type>(value);
      }
    }
  }

  void read_load(const Json& line) {
    load::Load now = load_ ? *load_ : load::Load();
    const auto as_index = [](const std::string& key) { return static_cast<std::uint32_t>(std::stoul(key)); };
    read_changes(
        line.value("containers", Json::object()), [](const std::string& id) { return id; }, now.containers);
    read_changes(line.value("nodes", Json::object()), as_index, now.nodes);
    read_changes(line.value("cpus", Json::object()), as_index, now.cpus);
    if (const auto lasts = line.find("measured_for_ms"); lasts != line.end()) {
      now.measured_for.reset();
      if (!lasts->is_null()) now.measured_for = std::chrono::milliseconds(lasts->get<std::int64_t>());
    }
    load_ = std::make_shared<const load::Load>(std::move(now));
  }

  void use_machine(const Json& line) {
    machine_ = std::make_shared<const topology::Topology>(from_json<topology::Topology>(line.at("machine")));
  }

  void read_ledger(const Json& line) {
    ledger_.forget();
    ledger_.apply(line.at("ledger"));
  }

  void configure(const Json& line) {
    const Json& values = line.at("values");
    if (std::exchange(values_, values) == values) return;
    std::vector<config::ConfigEntry> entries;
    if (options_.configuration) {
      if (has_setup_) return;
      entries = *options_.configuration;
    } else {
      for (const Json& value : values) {
        entries.push_back(
            {value.at(0).get<std::string>(), value.at(1).get<std::string>(), value.at(2).get<std::string>()});
      }
    }
    policies_->make(load(std::move(entries)), state_, machine_);
    has_setup_ = true;
  }

  /// A plugin stays loaded as long as the process lives.
  plugin::LoadedConfig load(std::vector<config::ConfigEntry> entries) {
    const auto is_about_same_key = [](const config::ConfigEntry& a, const config::ConfigEntry& b) {
      return a.section == b.section && a.key == b.key;
    };
    std::erase_if(entries, [&](const config::ConfigEntry& entry) {
      return std::any_of(options_.overrides.begin(), options_.overrides.end(),
                         [&](const config::ConfigEntry& other) { return is_about_same_key(entry, other); });
    });
    entries.insert(entries.end(), options_.overrides.begin(), options_.overrides.end());
    const config::ConfigEntry elsewhere{"daemon", "plugin-dir", options_.plugin_dir};
    std::error_code ignored;
    std::erase_if(entries, [&](const config::ConfigEntry& entry) {
      return is_about_same_key(entry, elsewhere) && !std::filesystem::is_directory(entry.value, ignored);
    });
    const bool has_directory = std::any_of(entries.begin(), entries.end(), [&](const config::ConfigEntry& entry) {
      return is_about_same_key(entry, elsewhere);
    });
    if (!has_directory && !options_.plugin_dir.empty()) entries.push_back(elsewhere);
    config::RawConfig raw;
    raw.file.clear();
    raw.entries = std::move(entries);
    plugin::LoadedConfig setup = plugin::load_config(std::move(raw), libraries_);
    for (const plugin::PluginLibrary& library : setup.plugins.libraries) {
      const bool is_known = std::any_of(libraries_.begin(), libraries_.end(),
                                        [&](const auto& known) { return known.id() == library.id(); });
      if (!is_known) libraries_.push_back(library);
    }
    return setup;
  }

  std::shared_ptr<const placement::PolicyRequest> read_request(const Json& line) {
    auto request = std::make_shared<placement::PolicyRequest>();
    read_json(line.at("request"), *request);
    request->topology = machine_;
    request->load = load_;
    read_json(line.at("workload"), request->workload);
    request->ledger = ledger_.apply(line.at("ledger"));
    for (const Json& candidate : line.value("new_candidates", Json::array()))
      read_json(candidate, candidates_.emplace_back());
    read_candidates(line.at("candidates").get<std::string>(), request->candidates);
    return request;
  }

  /// "0-3,7" of those that the file has so far.
  void read_candidates(const std::string& positions, std::vector<placement::Candidate>& candidates) const {
    std::istringstream in(positions);
    std::string run;
    while (std::getline(in, run, ',')) {
      const auto dash = run.find('-');
      const std::size_t first = std::stoul(run);
      const std::size_t last = dash == std::string::npos ? first : std::stoul(run.substr(dash + 1));
      if (last >= candidates_.size() || first > last) throw InvalidLine("it names candidates that there are not");
      for (std::size_t at = first; at <= last; ++at) candidates.push_back(candidates_[at]);
    }
  }

  void decide(const Json& line) {
    const std::shared_ptr<const placement::PolicyRequest> request = read_request(line);
    const auto recorded = from_json<std::vector<PolicyAnswers>>(line.at("answers"));
    ++result_.decisions;
    for (const PolicyAnswers& answers : recorded) result_.lost_votes += answers.lost.empty() ? 0 : 1;
    const NotedDecision made = policies_->decide(request, rules_.value_or(placement::PlacementRules()), recorded);
    const auto difference =
        difference_between(line.at("decision"), recorded, as_written(to_json(made.decision)),
                           from_json<std::vector<PolicyAnswers>>(as_written(to_json(made.answers))));
    if (difference) note({number_, display_name(request->workload), difference->policy, difference->what});
  }

  void publish(const Json& line) {
    auto container_event = std::make_shared<plugin::ContainerEvent>();
    read_json(line.at("event"), *container_event);
    container_event->topology = machine_;
    ++result_.events;
    policies_->publish(std::move(container_event));
  }

  void tick(const Json& line) {
    auto seen = std::make_shared<plugin::TickSnapshot>();
    seen->topology = machine_;
    seen->ledger = ledger_.apply(line.at("ledger"));
    seen->load = load_;
    ++result_.ticks;
    const auto recorded = from_json<std::vector<plugin::MoveRequest>>(line.value("moves", Json::array()));
    const auto woken = line.value("woken", std::vector<std::string>());
    const plugin::TickTime when{std::chrono::milliseconds(line.at("steady_ms").get<std::int64_t>()),
                                std::chrono::milliseconds(line.at("at").get<std::int64_t>())};
    const auto moves = policies_->tick(when, seen, woken);
    if (moves == recorded) return;
    const auto describe = [](const plugin::MoveRequest& move) {
      return fmt::format("policy {} asks for a move of {}/{} ({})", move.plugin, move.key.pod_uid, move.key.name,
                         move.reason);
    };
    const auto [now, then] = std::mismatch(moves.begin(), moves.end(), recorded.begin(), recorded.end());
    const plugin::MoveRequest& other = now == moves.end() ? *then : *now;
    note({number_, other.key.pod_uid + '/' + other.key.name, other.plugin,
          fmt::format("{}, which it {} in this tick", describe(other),
                      now == moves.end() ? "did, and does not now" : "did not then")});
  }

  void note(Difference difference) {
    ++result_.different;
    if (!result_.first) result_.first = std::move(difference);
  }

  const ReplayOptions& options_;
  std::size_t number_ = 0;
  ReplayResult result_;
  std::shared_ptr<const topology::Topology> machine_;
  std::optional<placement::PlacementRules> rules_;
  LedgerReader ledger_;
  std::shared_ptr<const load::Load> load_;
  std::vector<placement::Candidate> candidates_;
  bool has_setup_ = false;
  Json values_;
  std::vector<plugin::PluginLibrary> libraries_;
  const std::shared_ptr<ReplayedState> state_ = std::make_shared<ReplayedState>();
  std::unique_ptr<Policies> policies_ = std::make_unique<Policies>();
};

Error at_line(std::size_t number, Code code, const std::string& what) {
  return {code, fmt::format("line {}: {}", number, what)};
}

}  // namespace

bool is_record(std::istream& in) {
  const auto begin = in.tellg();
  std::string first(kRecordBegin.size(), '\0');
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  const bool is = in.gcount() == static_cast<std::streamsize>(first.size()) && first == kRecordBegin;
  in.clear();
  in.seekg(begin);
  return is;
}

Result<ReplayResult> replay(std::istream& record, const ReplayOptions& options) {
  Player player(options);
  std::string text;
  std::optional<Error> torn;
  std::size_t number = 0;
  try {
    while (std::getline(record, text)) {
      ++number;
      if (trimmed(text).empty()) continue;
      Json line;
      try {
        line = Json::parse(text);
      } catch (const Json::exception& error) {
        if (torn) return *torn;
        torn = at_line(number, Code::kInvalidArgument, fmt::format("this is not JSON: {}", error.what()));
        continue;
      }
      // A daemon that was killed while it wrote a line writes no other: the next one begins anew.
      if (torn && line.value("op", "") != op::kRecord) return *torn;
      if (std::exchange(torn, std::nullopt)) ++player.counts().torn_lines;
      player.play(number, line);
    }
    if (torn) ++player.counts().torn_lines;
  } catch (const Json::exception& error) {
    return at_line(number, Code::kInvalidArgument, fmt::format("it is no line of a record: {}", error.what()));
  } catch (const InvalidLine& error) {
    return at_line(number, Code::kInvalidArgument, error.what());
  } catch (const NotReplayable& error) {
    return at_line(number, Code::kFailedPrecondition, error.what());
  } catch (const std::logic_error& error) {  // std::stoul
    return at_line(number, Code::kInvalidArgument, fmt::format("it is no line of a record: {}", error.what()));
  }
  return player.result();
}

}  // namespace topolet::replay
