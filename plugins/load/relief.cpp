#include "plugins/load/relief.hpp"

#include <topolet/policy/lists.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

namespace topolet::load_policy {
namespace {

using sdk::Set;

constexpr std::string_view kLeftPrefix = "left/";
constexpr std::string_view kUsedPrefix = "used/";

std::string key_of(std::string_view prefix, std::string_view container_id) {
  return std::string(prefix) + std::string(container_id);
}

std::int64_t permille(std::int64_t part, std::int64_t whole) { return whole <= 0 ? 1000000 : part * 1000 / whole; }

std::int64_t number_from(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

bool is_stolen(const NodeUse& use) {
  return use.is_effective_known && use.effective_milli * 1000 < use.wanted_milli() * kLeastEffective;
}

bool is_full(const NodeUse& use) { return use.shared_milli > 0 && use.shared_milli * 1000 >= use.pool_milli * kFull; }

Set set_of(std::uint32_t index) {
  Set set;
  set.insert(index);
  return set;
}

}  // namespace

void Relief::tick(const topolet_tick_request& request, sdk::Wishes& wishes) {
  if (!options_.relieves) return;
  forget_gone(*request.ledger);
  const Measured measured(request.load, *request.topology, *request.ledger);
  if (!measured.why_not().empty()) {
    waits_since_.clear();
    return pressed_since_.clear();
  }
  std::vector<NodeUse> uses = node_uses(*request.topology, *request.ledger, measured);
  note_pressed(uses, request.now_ms);
  for (std::size_t from = 0; from < uses.size(); ++from) {
    const auto since = pressed_since_.find(uses[from].os_index);
    if (since == pressed_since_.end() || request.now_ms - since->second < kPressedMs) continue;
    if (was_just_asked(uses[from], request.now_ms)) continue;
    const std::optional<Move> move = best_move(from, request, measured, uses);
    if (!move) continue;
    since->second = request.now_ms;
    if (!ask(*move, uses[from], request, uses[move->to], "", wishes)) continue;
    uses[from].shared_milli -= move->used_milli;
    uses[move->to].shared_milli += move->used_milli;
  }
  note_waiting(request, measured);
  relieve_waiting(request, measured, uses, wishes);
}

/// Those of class BE yield to others: they wait because they are to.
void Relief::note_waiting(const topolet_tick_request& request, const Measured& measured) {
  std::map<std::string, std::uint64_t> waiting;
  const auto entries = sdk::entries(*request.ledger);
  for (std::size_t i = 0; i < entries.size() && options_.pressure_permille > 0; ++i) {
    const bool is_be = class_of(source_of(entries[i]), options_.taking_namespaces).which == Class::kBe;
    if (is_be || entries[i].mode != TOPOLET_MODE_SHARED || entries[i].container_id.len == 0) continue;
    if (measured.waits_permille(i).value_or(0) < options_.pressure_permille) continue;
    const std::string id(sdk::text(entries[i].container_id));
    const auto since = waits_since_.find(id);
    waiting[id] = since == waits_since_.end() ? request.now_ms : since->second;
  }
  waits_since_ = std::move(waiting);
}

/// One of a node a minute, as for other causes.
void Relief::relieve_waiting(const topolet_tick_request& request, const Measured& measured, std::vector<NodeUse>& uses,
                             sdk::Wishes& wishes) {
  const auto entries = sdk::entries(*request.ledger);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto since = waits_since_.find(std::string(sdk::text(entries[i].container_id)));
    if (since == waits_since_.end() || request.now_ms - since->second < kWaitsMs) continue;
    if (are_others_first(*request.ledger, entries[i])) continue;
    for (std::size_t from = 0; from < uses.size(); ++from) {
      if (was_just_asked(uses[from], request.now_ms) ||
          !may_be_asked(entries[i], sdk::nodes(*request.topology)[from], request.now_ms))
        continue;
      const std::int64_t used = measured.used_milli(i).value_or(assumed_milli(entries[i].demand));
      const std::optional<Move> move = move_of(i, from, request, used, uses);
      if (!move) continue;
      const std::string why =
          "waits for a CPU for " + std::to_string(measured.waits_permille(i).value_or(0) / 10) + " % of the time, ";
      if (!ask(*move, uses[from], request, uses[move->to], why, wishes)) return;
      uses[from].shared_milli -= used;
      uses[move->to].shared_milli += used;
    }
  }
}

bool Relief::was_just_asked(const NodeUse& from, std::uint64_t now_ms) const {
  const auto asked = asked_of_.find(from.os_index);
  return asked != asked_of_.end() && now_ms - asked->second < kPressedMs;
}

/// topoletd narrows BestEffort containers beside it first, as long as they have CPUs to lose.
bool Relief::are_others_first(const topolet_ledger& ledger, const topolet_ledger_entry& waiting) const {
  if (!options_.besteffort_gives_way) return false;
  const auto entries = sdk::entries(ledger);
  return std::any_of(entries.begin(), entries.end(), [&](const topolet_ledger_entry& other) {
    return other.qos == TOPOLET_QOS_BESTEFFORT && other.mode == TOPOLET_MODE_SHARED &&
           (other.flags & TOPOLET_ENTRY_STARTED) != 0 && sdk::size_of(other.cpus) > kLeastForBestEffort &&
           sdk::size_of_both(other.cpus, waiting.cpus) > 0;
  });
}

/// A container that has left is remembered, so that it does not come back.
void Relief::notify(const topolet_event& event) {
  const std::string id(sdk::text(event.container_id));
  if (event.kind == TOPOLET_EVENT_RELEASED) {
    asked_.erase(id);
    if (host_.get(key_of(kUsedPrefix, id))) host_.remove(key_of(kUsedPrefix, id));
    if (host_.get(key_of(kLeftPrefix, id))) host_.remove(key_of(kLeftPrefix, id));
  }
  const auto asked = asked_.find(id);
  if (event.kind != TOPOLET_EVENT_MOVED || asked == asked_.end()) return;
  if (sdk::size_of_both(event.cpus, asked->second.node_cpus.view()) > 0) return;
  const Set nodes = left_by(id).nodes | asked->second.node;
  host_.set(key_of(kLeftPrefix, id), nodes.to_string());
}

Left Relief::left_by(std::string_view container_id) const {
  Left left;
  if (container_id.empty()) return left;
  left.nodes = sdk::parse_list(host_.get(key_of(kLeftPrefix, container_id)).value_or("")).value_or(Set());
  left.used_milli = number_from(host_.get(key_of(kUsedPrefix, container_id)).value_or("0"));
  return left;
}

void Relief::note_pressed(const std::vector<NodeUse>& uses, std::uint64_t now_ms) {
  for (const NodeUse& use : uses) {
    if (is_stolen(use) || is_full(use)) {
      pressed_since_.try_emplace(use.os_index, now_ms);
    } else {
      pressed_since_.erase(use.os_index);
    }
  }
}

/// Of containers that ended while no topoletd ran nobody is told.
void Relief::forget_gone(const topolet_ledger& ledger) {
  const std::vector<std::string> keys = host_.keys();
  if (keys.empty()) return;
  std::set<std::string_view> there;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) there.insert(sdk::text(entry.container_id));
  for (const std::string& key : keys) {
    const std::size_t id = std::min(key.find('/'), key.size() - 1) + 1;
    if (there.count(std::string_view(key).substr(id)) == 0) host_.remove(key);
  }
}

/// Those of the lower class leave first, and of these the one that uses most.
std::optional<Relief::Move> Relief::best_move(std::size_t from, const topolet_tick_request& request,
                                              const Measured& measured, const std::vector<NodeUse>& uses) const {
  std::optional<Move> best;
  const auto entries = sdk::entries(*request.ledger);
  const topolet_node& node = sdk::nodes(*request.topology)[from];
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::optional<std::int64_t> used = measured.used_milli(i);
    if (!used || *used < kIdleMilli || !may_be_asked(entries[i], node, request.now_ms)) continue;
    const std::optional<Move> move = move_of(i, from, request, *used, uses);
    if (!move) continue;
    if (!best || std::tuple(best->which, move->used_milli) > std::tuple(move->which, best->used_milli)) best = move;
  }
  return best;
}

/// To the node of which the least is used then.
std::optional<Relief::Move> Relief::move_of(std::size_t entry, std::size_t from, const topolet_tick_request& request,
                                            std::int64_t used_milli, const std::vector<NodeUse>& uses) const {
  const topolet_ledger_entry& leaving = sdk::entries(*request.ledger)[entry];
  const Left left = left_by(sdk::text(leaving.container_id));
  const std::int64_t now = permille(uses[from].shared_milli, uses[from].pool_milli);
  std::optional<Move> best;
  for (std::size_t to = 0; to < uses.size(); ++to) {
    const NodeUse& there = uses[to];
    if (to == from || there.pool_milli <= 0 || left.nodes.has(there.os_index) || !there.is_effective_known ||
        is_stolen(there))
      continue;
    const std::int64_t after = permille(there.shared_milli + there.assumed_milli + used_milli, there.pool_milli);
    if (after > kCalm || after > now - kClearlyLess || (best && after >= best->after_permille)) continue;
    best = Move{entry, to, used_milli, class_of(source_of(leaving), options_.taking_namespaces).which, after};
  }
  return best;
}

/// It shares the CPUs of this node only, runs, and nothing ties it to the node.
bool Relief::may_be_asked(const topolet_ledger_entry& entry, const topolet_node& node, std::uint64_t now_ms) const {
  const bool runs = (entry.flags & TOPOLET_ENTRY_STARTED) != 0 && (entry.flags & TOPOLET_ENTRY_PENDING) == 0;
  const bool is_tied =
      entry.mems.count > 0 || entry.devices.count > 0 || entry.cdi_devices.count > 0 || entry.used_devices.count > 0;
  if (entry.mode != TOPOLET_MODE_SHARED || !runs || is_tied || entry.container_id.len == 0) return false;
  if (options_.besteffort_gives_way && entry.qos == TOPOLET_QOS_BESTEFFORT) return false;
  const std::size_t here = sdk::size_of_both(entry.cpus, node.cpus);
  if (here == 0 || here < sdk::size_of(entry.cpus)) return false;
  const auto asked = asked_.find(std::string(sdk::text(entry.container_id)));
  return asked == asked_.end() || now_ms - asked->second.at_ms >= kAskedAgainMs;
}

/// Returns false if it is not asked, as too many are remembered.
bool Relief::ask(const Move& move, const NodeUse& from, const topolet_tick_request& request, const NodeUse& to,
                 const std::string& why, sdk::Wishes& wishes) {
  const topolet_ledger_entry& entry = sdk::entries(*request.ledger)[move.entry];
  const std::string id(sdk::text(entry.container_id));
  std::erase_if(asked_, [&](const auto& known) { return request.now_ms - known.second.at_ms >= kAskedAgainMs; });
  if (host_.keys().size() >= 2 * kMostLeft) return false;
  for (const topolet_node& node : sdk::nodes(*request.topology)) {
    if (node.os_index == from.os_index) asked_[id] = {request.now_ms, set_of(from.os_index), Set(node.cpus)};
  }
  asked_of_[from.os_index] = request.now_ms;
  host_.set(key_of(kUsedPrefix, id), std::to_string(move.used_milli));
  wishes.replace_on_other_nodes(move.entry, "class " + std::string(to_string(move.which)) + ", " + why + "uses " +
                                                cpus_text(move.used_milli) + " CPUs: " + cpus_text(from.shared_milli) +
                                                " of " + cpus_text(from.pool_milli) + " shared CPUs of node " +
                                                std::to_string(from.os_index) + " are used, and " +
                                                cpus_text(to.shared_milli) + " of " + cpus_text(to.pool_milli) +
                                                " of node " + std::to_string(to.os_index));
  return true;
}

}  // namespace topolet::load_policy
