#include "core/replay/record_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/replay/record_format.hpp"
#include "core/replay/recorded_fields.hpp"

namespace topolet::replay {
namespace {

/// Creates whose operation never comes, as they were planned only, are forgotten when there are so many.
constexpr std::size_t kMostEnvironments = 1024;

std::string text_of(const Json& line) { return line.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// "0-3,7", in the order in which they come.
class Positions {
 public:
  void add(std::uint64_t position) {
    if (count_ > 0 && position == last_ + 1) {
      last_ = position;
    } else {
      end_run();
      first_ = last_ = position;
    }
    ++count_;
  }
  std::string text() {
    end_run();
    return std::move(text_);
  }

 private:
  void end_run() {
    if (count_ == 0) return;
    if (!text_.empty()) text_ += ',';
    text_ += first_ == last_ ? fmt::format("{}", first_) : fmt::format("{}-{}", first_, last_);
  }

  std::string text_;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  std::size_t count_ = 0;
};

bool is_same(const placement::PlacementRules& a, const placement::PlacementRules& b) {
  bool same = true;
  detail::for_each_field<placement::PlacementRules>(
      [&](const auto& field) { same = same && a.*field.member == b.*field.member; });
  return same;
}

std::string key_of(const std::string& container_id) { return container_id; }
std::string key_of(std::uint32_t node) { return fmt::format("{}", node); }

/// What is new or another, and a null for what is not known any more.
template <class Loads>
void add_differences(const char* name, const Loads& before, const Loads& now, Json& line) {
  Json different = Json::object();
  for (const auto& [key, value] : now) {
    const auto known = before.find(key);
    if (known == before.end() || !(known->second == value)) different[key_of(key)] = to_json(value);
  }
  for (const auto& [key, value] : before) {
    if (now.find(key) == now.end()) different[key_of(key)] = Json();
  }
  if (!different.empty()) line[name] = std::move(different);
}

Json configuration_line(const RecordedSetup& setup) {
  Json values = Json::array();
  for (const config::ConfigEntry& entry : setup.entries) values.push_back({entry.section, entry.key, entry.value});
  return {{"op", op::kConfiguration}, {"number", setup.number}, {"values", std::move(values)}};
}

}  // namespace

Status RecordWriter::append(const Moment& at, Json line) {
  line["at"] = at.wall.count();
  if (Status written = file_.append(text_of(line)); !written) return written;
  if (writes_head_ || file_.size() < options_.max_bytes) return {};
  if (Status rotated = file_.rotate(); !rotated) return rotated;
  return write_head(at, true);
}

/// Writes the state that everything after it goes by, so that the file stands alone.
Status RecordWriter::write_head(const Moment& at, bool continues) {
  writes_head_ = true;
  load_ = {};
  candidates_.clear();
  last_candidates_.clear();
  last_positions_.clear();
  Json first{{"op", op::kRecord}, {"version", kRecordVersion}, {"topolet", options_.version}};
  if (continues) first["continues"] = true;
  Status written = append(at, std::move(first));
  const auto also = [&](Json line) {
    if (written) written = append(at, std::move(line));
  };
  if (topology_) also({{"op", op::kMachine}, {"machine", to_json(*topology_)}});
  for (const auto& [plugin, known] : states_)
    also(to_line({.kind = StateAccess::Kind::kAll, .plugin = plugin, .key = {}, .value = {}, .all = known}, known));
  if (setup_) also(configuration_line(*setup_));
  if (rules_) also({{"op", op::kRules}, {"rules", to_json(*rules_)}});
  if (continues) also({{"op", op::kLedger}, {"ledger", ledger_.whole(names())}});
  writes_head_ = false;
  return written;
}

Status RecordWriter::begin(const Moment& at, std::shared_ptr<const topology::Topology> topology) {
  topology_ = std::move(topology);
  // A file that earlier daemons have filled makes room first.
  if (file_.size() >= options_.max_bytes) {
    if (Status rotated = file_.rotate(); !rotated) return rotated;
  }
  return write_head(at, false);
}

Status RecordWriter::use_setup(const Moment& at, std::shared_ptr<const RecordedSetup> setup) {
  const bool is_known = setup_ && setup_->number == setup->number;
  setup_ = std::move(setup);
  return is_known ? Status() : append(at, configuration_line(*setup_));
}

Status RecordWriter::see_machine(const Moment& at, const std::shared_ptr<const topology::Topology>& topology) {
  if (topology == nullptr || topology == topology_) return {};
  topology_ = topology;
  return append(at, {{"op", op::kMachine}, {"machine", to_json(*topology_)}});
}

Status RecordWriter::see_rules(const Moment& at, const placement::PlacementRules& rules) {
  if (rules_ && is_same(*rules_, rules)) return {};
  rules_ = rules;
  return append(at, {{"op", op::kRules}, {"rules", to_json(*rules_)}});
}

Status RecordWriter::see_load(const Moment& at, const std::shared_ptr<const load::Load>& load) {
  const load::Load now = load ? *load : load::Load();
  Json line{{"op", op::kMeasured}};
  add_differences("containers", load_.containers, now.containers, line);
  add_differences("nodes", load_.nodes, now.nodes, line);
  if (load_.measured_for != now.measured_for)
    line["measured_for_ms"] = now.measured_for ? Json(now.measured_for->count()) : Json();
  add_differences("cpus", load_.cpus, now.cpus, line);
  if (line.size() == 1) return {};
  load_ = now;
  return append(at, std::move(line));
}

Status RecordWriter::add_ledger(const Moment& at, const placement::LedgerSnapshot& ledger) {
  ledger_.forget();
  return append(at, {{"op", op::kLedger}, {"ledger", ledger_.changes(ledger, names())}});
}

/// Each by its number among those of this file; new ones are written out.
void RecordWriter::add_candidates(const std::vector<placement::Candidate>& candidates, Json& line) {
  if (candidates != last_candidates_) {
    Positions positions;
    Json added = Json::array();
    for (const placement::Candidate& candidate : candidates) {
      const auto [known, is_new] = candidates_.try_emplace(
          {candidate.kind, candidate.is_domain, candidate.nodes.words(), candidate.cpus.words(), candidate.distance},
          candidates_.size());
      if (is_new) added.push_back(to_json(candidate));
      positions.add(known->second);
    }
    if (!added.empty()) line["new_candidates"] = std::move(added);
    last_candidates_ = candidates;
    last_positions_ = positions.text();
  }
  line["candidates"] = last_positions_;
}

Status RecordWriter::add_decision(const Moment& at, const placement::PolicyRequest& request,
                                  const placement::PlacementRules& rules, const NotedDecision& made) {
  if (Status seen = see_machine(at, request.topology); !seen) return seen;
  if (Status seen = see_rules(at, rules); !seen) return seen;
  if (Status seen = see_load(at, request.load); !seen) return seen;
  const placement::Workload workload = without_secrets(request.workload, names());
  if (env_.size() >= kMostEnvironments) env_.clear();
  if (!workload.env.empty()) env_[workload.key] = to_json(workload.env);
  Json line{{"op", op::kDecide},
            {"pod", workload.key.pod_uid},
            {"container", workload.key.name},
            {"workload", to_json(workload)},
            {"request", to_json(request)}};
  add_candidates(request.candidates, line);
  line["ledger"] = ledger_.changes(request.ledger, names());
  line["answers"] = to_json(made.answers);
  line["decision"] = to_json(made.decision);
  return append(at, std::move(line));
}

Status RecordWriter::add_event(const Moment& at, const plugin::ContainerEvent& container_event) {
  if (Status seen = see_machine(at, container_event.topology); !seen) return seen;
  plugin::ContainerEvent shown = container_event;
  shown.workload = without_secrets(std::move(shown.workload), names());
  shown.workload.env.clear();
  return append(at, {{"op", op::kEvent}, {"event", to_json(shown)}});
}

Status RecordWriter::add_tick(const Moment& at, const plugin::TickSnapshot& seen,
                              const std::vector<plugin::MoveRequest>& moves, const std::vector<std::string>& woken) {
  if (Status known = see_machine(at, seen.topology); !known) return known;
  if (Status known = see_load(at, seen.load); !known) return known;
  Json line{{"op", op::kTick}, {"steady_ms", at.steady.count()}};
  line["ledger"] = ledger_.changes(seen.ledger, names());
  if (!woken.empty()) line["woken"] = woken;
  if (!moves.empty()) line["moves"] = to_json(moves);
  return append(at, std::move(line));
}

Status RecordWriter::add_state(const Moment& at, const StateAccess& access) {
  KnownState& known = states_[access.plugin];
  Json line = to_line(access, known);
  apply_to_known(access, known);
  return append(at, std::move(line));
}

Status RecordWriter::add_operation(const Moment& at, const placement::ContainerKey& key, Json line) {
  if (const auto given = line.find("annotations"); given != line.end()) {
    const SharedStringMap kept = recorded_annotations(from_json<SharedStringMap>(*given), names());
    if (kept.empty()) {
      line.erase("annotations");
    } else {
      *given = to_json(kept);
    }
  }
  if (const auto env = env_.find(key); env != env_.end() && line["op"] == "create") {
    Json words = Json::array();
    for (const Json& variable : env->second)
      words.push_back(variable.at(0).get<std::string>() + '=' + variable.at(1).get<std::string>());
    line["env"] = std::move(words);
    env_.erase(env);
  }
  return append(at, std::move(line));
}

}  // namespace topolet::replay
