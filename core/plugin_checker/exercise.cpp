#include "core/plugin_checker/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/memory_nodes.hpp"
#include "core/placement/rank.hpp"
#include "core/placement/take_cpus.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr std::size_t kPickedCandidates = 6;
constexpr std::size_t kShownBytes = 400;
/// So that a write is a crash in the call that makes it.
const plugin::LentMemory kReadOnly{.guard = plugin::LentGuard::kReadOnly};

template <class Tag>
std::string describe_set(const IndexSet<Tag>& set) {
  return set.empty() ? "none" : printable(set.to_string(), kShownBytes);
}

std::string describe_verdict(const placement::Verdict& verdict) {
  switch (verdict.kind) {
    case placement::Verdict::Kind::kAbstain:
      return "abstain";
    case placement::Verdict::Kind::kReject:
      return "reject";
    case placement::Verdict::Kind::kScore:
      break;
  }
  return fmt::format("score {}", verdict.score);
}

/// Puts one trial together, call by call.
class Exerciser {
 public:
  Exerciser(plugin::PluginPolicy& plugin, const TestRequest& test_request, const Progress& progress)
      : plugin_(plugin),
        capabilities_(plugin.capabilities()),
        test_request_(test_request),
        request_(test_request.request),
        topology_(test_request.topology->newest_minor() <= plugin.known().minor()
                      ? test_request.topology
                      : std::make_shared<const plugin::AbiTopology>(test_request.request.topology, plugin.known())),
        progress_(progress) {}

  ExerciseResult exercise_decision() {
    const plugin::AbiRequest view(request_, topology_, kReadOnly, plugin_.known());
    propose(view);
    score(view);
    for (const std::size_t candidate : candidates_to_pick()) pick(view, candidate);
    return std::move(result_);
  }

  ExerciseResult exercise_events() {
    using Kind = plugin::ContainerEvent::Kind;
    std::uint64_t sequence = 0;
    for (const Kind kind : {Kind::kPlaced, Kind::kStarted, Kind::kMoved, Kind::kResized, Kind::kExited, Kind::kReleased,
                            Kind::kUnpinned, Kind::kDenied, Kind::kPodRemoved}) {
      begin("notify", TOPOLET_EVENTS_ID);
      ++sequence;
      if (!plugin_.hears_of(kind)) continue;
      plugin::ContainerEvent container_event = event_of(kind);
      container_event.sequence = sequence;
      judge(plugin_.notify(container_event, *topology_));
    }
    begin("tick", TOPOLET_TICK_ID);
    const plugin::TickTime now{std::chrono::milliseconds(1000), std::chrono::hours(24)};
    const plugin::AbiLedger ledger(request_.ledger, *topology_, kReadOnly, plugin_.known());
    const auto told = plugin_.tick({request_.topology, request_.ledger}, *topology_, ledger, now);
    if (judge(told)) {
      if (!told->refused.empty())
        violation(Violation::Kind::kInvalidReply, "moves of entries that the ledger has, each once", told->refused);
      for (const plugin::MoveRequest& wish : told->moves) result_.answers += wish.reason + '\n';
    }
    return std::move(result_);
  }

 private:
  plugin::ContainerEvent event_of(plugin::ContainerEvent::Kind kind) const {
    using Kind = plugin::ContainerEvent::Kind;
    plugin::ContainerEvent container_event{kind, request_.workload, {}, request_.topology};
    if (kind == Kind::kPodRemoved) {
      container_event.workload = {};
      container_event.workload.key.pod_uid = request_.workload.key.pod_uid;
      container_event.workload.key.sandbox_id = request_.workload.key.sandbox_id;
      container_event.workload.pod_name = request_.workload.pod_name;
      container_event.workload.pod_namespace = request_.workload.pod_namespace;
    } else if (kind == Kind::kDenied) {
      container_event.reason = "too few free CPUs";
    } else if (kind == Kind::kUnpinned) {
      container_event.placement.mode = placement::Mode::kForeign;
    } else {
      container_event.placement.mode = request_.exclusive ? placement::Mode::kExclusive : request_.shared_mode;
      if (!request_.candidates.empty()) container_event.placement.cpus = request_.candidates.back().cpus;
    }
    const bool is_made = kind != Kind::kPodRemoved && kind != Kind::kDenied;
    if (is_made) container_event.container_id = "4f1c9e";
    if (kind == Kind::kExited) container_event.exit_code = 1;
    return container_event;
  }

  void begin(const char* function, const char* capability) {
    where_ = fmt::format("{} ({})", function, test_request_.name);
    progress_(where_);
    if (std::find(capabilities_.begin(), capabilities_.end(), capability) != capabilities_.end()) ++result_.calls;
  }

  void violation(Violation::Kind kind, std::string expected, const std::string& actual) {
    result_.violations.push_back({kind, {std::move(expected), fmt::format("{}: {}", where_, actual)}});
  }

  /// Judges an answer. Returns false if there is none.
  template <class T>
  bool judge(const plugin::CallResult<T>& answer) {
    using plugin::CallFault;
    if (answer) return true;
    const auto [fault, why] = answer.failure();
    result_.answers += why + '\n';
    switch (fault) {
      case CallFault::kThrew:
        violation(Violation::Kind::kThrew, "TOPOLET_OK or TOPOLET_FAILED, and no exception", why);
        break;
      case CallFault::kBadStatus:
        violation(Violation::Kind::kBadStatus, "TOPOLET_OK or TOPOLET_FAILED, and no exception", why);
        break;
      case CallFault::kWroteToLent:
      case CallFault::kWroteToShown:
        violation(Violation::Kind::kInvalidReply, "nothing written to what is lent as const", why);
        break;
      case CallFault::kInvalidReply:
        violation(Violation::Kind::kInvalidReply, "an answer within the bounds of the header", why);
        break;
      case CallFault::kDeclined:
      case CallFault::kLate:  // which nobody watches for here
        ++result_.declined;
        break;
    }
    return false;
  }

  void propose(const plugin::AbiRequest& view) {
    begin("propose", TOPOLET_PROPOSE_ID);
    const auto proposals = plugin_.propose(view);
    if (!judge(proposals)) return;
    NodeSet known;
    for (const topology::Node& node : request_.topology->nodes) known.insert(node.os_index);
    for (const NodeSet& nodes : *proposals) {
      result_.answers += fmt::format("proposes {}\n", nodes.to_string());
      expect_subset("nodes", nodes, known, "nodes of the topology");
    }
  }

  void score(const plugin::AbiRequest& view) {
    begin("score", TOPOLET_SCORE_ID);
    const auto verdicts = plugin_.score(view);
    if (!judge(verdicts)) return;
    for (std::size_t i = 0; i < verdicts->size(); ++i) {
      const placement::Verdict& verdict = (*verdicts)[i];
      result_.answers +=
          fmt::format("candidate {}: {}: {} {}\n", i, describe_verdict(verdict), verdict.reason, verdict.code);
    }
  }

  CpuSet usable_of(std::size_t candidate) const { return request_.candidates[candidate].cpus & request_.usable(); }

  std::vector<std::size_t> candidates_to_pick() const {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < request_.candidates.size(); ++i) {
      if (fits(request_, usable_of(i))) fitting.push_back(i);
    }
    if (fitting.size() <= kPickedCandidates) return fitting;
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < kPickedCandidates; ++i) {
      some.push_back(fitting[i * (fitting.size() - 1) / (kPickedCandidates - 1)]);
    }
    return some;
  }

  void pick(const plugin::AbiRequest& view, std::size_t candidate) {
    const CpuSet offered = usable_of(candidate);
    CpuSet usable = offered;
    begin("pick", TOPOLET_PICK_ID);
    const auto pick = plugin_.pick(view, candidate, offered, request_.exclusive_cpus);
    std::vector<placement::CpuMinimum> shares;
    if (judge(pick)) {
      judge_pick(*pick, offered);
      if (pick->narrow && fits(request_, usable & *pick->narrow)) usable &= *pick->narrow;
      shares = pick->at_least;
    }
    const std::vector<std::uint32_t> order = order_pick(view, candidate, usable);
    placement::Placement placement;
    placement.mode = request_.exclusive ? placement::Mode::kExclusive : request_.shared_mode;
    placement.cpus = request_.exclusive ? take_with_minimums(*request_.topology, usable, request_.exclusive_cpus,
                                                             shares, [&](const CpuSet&, std::size_t) { return order; })
                                        : usable;
    begin("pick", TOPOLET_PICK_ID);
    const auto beside =
        plugin_.pick(view, candidate, offered, request_.exclusive_cpus, TOPOLET_PICK_REVIEW, placement.cpus);
    if (judge(beside)) {
      judge_pick(*beside, offered);
      placement.withheld = beside->withhold - placement.cpus;
    }
    adjust(view, candidate, std::move(placement));
  }

  /// Nobody is asked for the order of CPUs that are shared.
  std::vector<std::uint32_t> order_pick(const plugin::AbiRequest& view, std::size_t candidate, const CpuSet& usable) {
    if (!request_.exclusive) return {};
    begin("pick", TOPOLET_PICK_ID);
    const auto pick = plugin_.pick(view, candidate, usable, request_.exclusive_cpus, TOPOLET_PICK_ORDER);
    if (!judge(pick)) return {};
    judge_pick(*pick, usable);
    return pick->order;
  }

  void judge_pick(const placement::Pick& pick, const CpuSet& usable) {
    result_.answers +=
        fmt::format("narrow {} withhold {} order {} {} {} {}", pick.narrow ? pick.narrow->to_string() : "nothing",
                    pick.withhold.to_string(), fmt::join(pick.order, ","), pick.reason, pick.unmet, pick.rejected);
    if (!pick.code.empty()) result_.answers += ' ' + pick.code;
    for (const placement::Replacement& other : pick.replace) result_.answers += " replace " + other.reason;
    for (const placement::CpuMinimum& share : pick.at_least) {
      result_.answers += fmt::format(" at least {} of {}", share.count, share.cpus.to_string());
      expect_subset("at_least", share.cpus, usable, "usable");
    }
    result_.answers += '\n';
    if (pick.narrow) {
      expect_subset("narrow", *pick.narrow, usable, "usable");
      if (!pick.narrow->intersects(usable)) {
        violation(Violation::Kind::kEmptySelection,
                  fmt::format("narrow to leave some of the usable CPUs {}", describe_set(usable)),
                  fmt::format("narrow to {}", describe_set(*pick.narrow)));
      }
    }
    expect_subset("withhold", pick.withhold, usable, "usable");
    CpuSet ordered;
    for (const std::uint32_t cpu : pick.order) ordered.insert(cpu);
    expect_subset("order", ordered, usable, "usable");
  }

  template <class Tag>
  void expect_subset(const char* what, const IndexSet<Tag>& said, const IndexSet<Tag>& bound, const char* bound_name) {
    if (said.is_subset_of(bound)) return;
    violation(Violation::Kind::kOutsideOffer, fmt::format("{} inside `{}`, {}", what, bound_name, describe_set(bound)),
              fmt::format("{} of {}: {} are not in it", what, describe_set(said), describe_set(said - bound)));
  }

  void adjust(const plugin::AbiRequest& view, std::size_t candidate, placement::Placement placement) {
    const placement::ChosenPlacement chosen{candidate, std::move(placement), allowed_memory_nodes(request_)};
    begin("adjust", TOPOLET_ADJUST_ID);
    const auto adjustment = plugin_.adjust(view, chosen);
    if (!judge(adjustment)) return;
    result_.answers +=
        fmt::format("mems {} {}\n", adjustment->mems ? adjustment->mems->to_string() : "nothing", adjustment->reason);
    const placement::AddedFields& added = adjustment->added;
    for (const auto* pairs : {&added.env, &added.annotations, &added.tags, &added.unified}) {
      for (const auto& [name, value] : *pairs) result_.answers += name + '=' + value + '\n';
    }
    if (!added.rdt_class.empty()) result_.answers += "RDT class " + added.rdt_class + '\n';
    if (added.memory_policy) result_.answers += "memory policy " + describe(*added.memory_policy) + '\n';
    if (added.scheduler) result_.answers += "scheduler " + describe(*added.scheduler) + '\n';
    if (added.io_priority) result_.answers += "I/O priority " + describe(*added.io_priority) + '\n';
    for (const std::string& device : adjustment->used_devices) result_.answers += "uses " + device + '\n';
    if (!adjustment->mems) return;
    expect_subset("mems", *adjustment->mems, chosen.memory, "memory");
    if (adjustment->mems->empty()) {
      violation(Violation::Kind::kEmptySelection, fmt::format("mems to name some of {}", describe_set(chosen.memory)),
                "mems of no node");
    }
  }

  plugin::PluginPolicy& plugin_;
  const std::vector<std::string> capabilities_;
  const TestRequest& test_request_;
  const placement::PolicyRequest& request_;
  const std::shared_ptr<const plugin::AbiTopology> topology_;
  const Progress& progress_;
  std::string where_;
  ExerciseResult result_;
};

}  // namespace

ExerciseResult exercise_decision(plugin::PluginPolicy& plugin, const TestRequest& test_request,
                                 const Progress& progress) {
  return Exerciser(plugin, test_request, progress).exercise_decision();
}

ExerciseResult exercise_events(plugin::PluginPolicy& plugin, const TestRequest& test_request,
                               const Progress& progress) {
  return Exerciser(plugin, test_request, progress).exercise_events();
}

}  // namespace topolet::plugin_checker
