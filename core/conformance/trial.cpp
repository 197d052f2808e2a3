#include "core/conformance/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/placement/decide.hpp"

namespace topolet {
namespace {

constexpr std::size_t kPickedCandidates = 6;
constexpr std::size_t kShownBytes = 400;

std::string shown(const std::string& text) {
  return text.size() <= kShownBytes ? text : text.substr(0, kShownBytes) + "…";
}

template <class Tag>
std::string words(const IndexSet<Tag>& set) {
  return set.empty() ? "none" : shown(set.to_string());
}

std::string word_of(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::kAbstain:
      return "abstain";
    case Verdict::Kind::kReject:
      return "reject";
    case Verdict::Kind::kScore:
      break;
  }
  return fmt::format("score {}", verdict.score);
}

NodeSet memory_open_to(const PolicyRequest& request) {
  NodeSet open;
  for (const Node& node : request.topology->nodes) {
    if (node.has_memory) open.insert(node.os_index);
  }
  return request.workload.kubelet_mems.empty() ? open : open & request.workload.kubelet_mems;
}

/// Puts one trial together, call by call.
class Trying {
 public:
  Trying(PluginPolicy& plugin, const Question& question, const Progress& progress)
      : plugin_(plugin),
        capabilities_(plugin.capabilities()),
        question_(question),
        request_(question.request),
        progress_(progress) {}

  Trial ask() {
    const RequestView view(request_, question_.topology);
    propose(view);
    score(view);
    for (const std::size_t candidate : candidates_to_pick()) pick(view, candidate);
    return std::move(trial_);
  }

  Trial tell() {
    using Kind = Happening::Kind;
    Happening happening{Kind::kPlaced, request_.workload, {}, request_.topology};
    happening.placement.mode = request_.exclusive ? Mode::kExclusive : Mode::kShared;
    if (!request_.candidates.empty()) happening.placement.cpus = request_.candidates.back().cpus;
    for (const Kind kind : {Kind::kPlaced, Kind::kStarted, Kind::kMoved, Kind::kResized, Kind::kReleased}) {
      happening.kind = kind;
      begin("notify", TOPOLET_EVENTS_ID);
      judge(plugin_.notify(happening, *question_.topology));
    }
    begin("tick", TOPOLET_TICK_ID);
    const auto now = std::chrono::milliseconds(1000);
    judge(plugin_.tick({request_.topology, request_.ledger}, *question_.topology, now));
    return std::move(trial_);
  }

 private:
  void begin(const char* function, const char* capability) {
    where_ = fmt::format("{} ({})", function, question_.name);
    progress_(where_);
    if (std::find(capabilities_.begin(), capabilities_.end(), capability) != capabilities_.end()) ++trial_.calls;
  }

  void breach(Breach::Kind kind, std::string expected, const std::string& came) {
    trial_.breaches.push_back({kind, {std::move(expected), fmt::format("{}: {}", where_, came)}});
  }

  /// False if there is no answer.
  template <class T>
  bool judge(const Result<T>& answer) {
    if (answer) return true;
    const std::string& why = answer.error().message;
    trial_.answers += why + '\n';
    if (answer.error().code == Code::kUnavailable) {
      ++trial_.given_up;
    } else if (why.find("makes no sense") != std::string::npos) {
      breach(Breach::Kind::kNonsense, "an answer within the bounds of the header", why);
    } else {
      breach(Breach::Kind::kMisbehaved, "TOPOLET_OK or TOPOLET_FAILED, and no exception", why);
    }
    return false;
  }

  void propose(const RequestView& view) {
    begin("propose", TOPOLET_PROPOSE_ID);
    const auto proposals = plugin_.propose(view);
    if (!judge(proposals)) return;
    NodeSet known;
    for (const Node& node : request_.topology->nodes) known.insert(node.os_index);
    for (const NodeSet& nodes : *proposals) {
      trial_.answers += fmt::format("proposes {}\n", nodes.to_string());
      inside("nodes", nodes, known, "nodes of the topology");
    }
  }

  void score(const RequestView& view) {
    begin("score", TOPOLET_SCORE_ID);
    const auto verdicts = plugin_.score(view);
    if (!judge(verdicts)) return;
    for (std::size_t i = 0; i < verdicts->size(); ++i) {
      const Verdict& verdict = (*verdicts)[i];
      trial_.answers += fmt::format("candidate {}: {}: {}\n", i, word_of(verdict), verdict.reason);
    }
  }

  CpuSet usable_of(std::size_t candidate) const { return request_.candidates[candidate].cpus & request_.ledger.pool; }

  std::vector<std::size_t> candidates_to_pick() const {
    const std::size_t needed = std::max<std::size_t>(1, request_.exclusive_cpus);
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < request_.candidates.size(); ++i) {
      if (usable_of(i).size() >= needed) fitting.push_back(i);
    }
    if (fitting.size() <= kPickedCandidates) return fitting;
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < kPickedCandidates; ++i) {
      some.push_back(fitting[i * (fitting.size() - 1) / (kPickedCandidates - 1)]);
    }
    return some;
  }

  void pick(const RequestView& view, std::size_t candidate) {
    const CpuSet offered = usable_of(candidate);
    CpuSet usable = offered;
    begin("pick", TOPOLET_PICK_ID);
    const auto pick = plugin_.pick(view, candidate, offered, request_.exclusive_cpus);
    std::vector<std::uint32_t> order;
    std::vector<Share> shares;
    if (judge(pick)) {
      judge_pick(*pick, offered);
      if (pick->narrow && (usable & *pick->narrow).size() >= std::max(1U, request_.exclusive_cpus)) {
        usable &= *pick->narrow;
      }
      order = pick->order;
      shares = pick->at_least;
    }
    Placement placement;
    placement.mode = request_.exclusive ? Mode::kExclusive : Mode::kShared;
    placement.cpus = request_.exclusive ? take_shares(*request_.topology, usable, request_.exclusive_cpus, shares,
                                                      [&](const CpuSet&, std::size_t) { return order; })
                                        : usable;
    begin("pick", TOPOLET_PICK_ID);
    const auto beside = plugin_.pick(view, candidate, offered, request_.exclusive_cpus, placement.cpus);
    if (judge(beside)) {
      judge_pick(*beside, offered);
      placement.withheld = beside->withhold - placement.cpus;
    }
    adjust(view, candidate, std::move(placement));
  }

  void judge_pick(const Pick& pick, const CpuSet& usable) {
    trial_.answers +=
        fmt::format("narrow {} withhold {} order {} {} {} {}", pick.narrow ? pick.narrow->to_string() : "nothing",
                    pick.withhold.to_string(), fmt::join(pick.order, ","), pick.reason, pick.unmet, pick.rejected);
    for (const Share& share : pick.at_least) {
      trial_.answers += fmt::format(" at least {} of {}", share.count, share.cpus.to_string());
      inside("at_least", share.cpus, usable, "usable");
    }
    trial_.answers += '\n';
    if (pick.narrow) {
      inside("narrow", *pick.narrow, usable, "usable");
      if (!pick.narrow->intersects(usable)) {
        breach(Breach::Kind::kLeavesNone, fmt::format("narrow to leave some of the usable CPUs {}", words(usable)),
               fmt::format("narrow to {}", words(*pick.narrow)));
      }
    }
    inside("withhold", pick.withhold, usable, "usable");
    CpuSet ordered;
    for (const std::uint32_t cpu : pick.order) ordered.insert(cpu);
    inside("order", ordered, usable, "usable");
  }

  template <class Tag>
  void inside(const char* what, const IndexSet<Tag>& said, const IndexSet<Tag>& bound, const char* bound_name) {
    if (said.is_subset_of(bound)) return;
    breach(Breach::Kind::kWidens, fmt::format("{} inside `{}`, {}", what, bound_name, words(bound)),
           fmt::format("{} of {}: {} are not in it", what, words(said), words(said - bound)));
  }

  void adjust(const RequestView& view, std::size_t candidate, Placement placement) {
    const Chosen chosen{candidate, std::move(placement), memory_open_to(request_)};
    begin("adjust", TOPOLET_ADJUST_ID);
    const auto adjustment = plugin_.adjust(view, chosen);
    if (!judge(adjustment)) return;
    trial_.answers +=
        fmt::format("mems {} {}\n", adjustment->mems ? adjustment->mems->to_string() : "nothing", adjustment->reason);
    for (const auto& [name, value] : adjustment->added.env) trial_.answers += name + '=' + value + '\n';
    for (const auto& [key, value] : adjustment->added.annotations) trial_.answers += key + ": " + value + '\n';
    if (!adjustment->mems) return;
    inside("mems", *adjustment->mems, chosen.memory, "memory");
    if (adjustment->mems->empty()) {
      breach(Breach::Kind::kLeavesNone, fmt::format("mems to name some of {}", words(chosen.memory)),
             "mems of no node");
    }
  }

  PluginPolicy& plugin_;
  const std::vector<std::string> capabilities_;
  const Question& question_;
  const PolicyRequest& request_;
  const Progress& progress_;
  std::string where_;
  Trial trial_;
};

}  // namespace

Trial ask(PluginPolicy& plugin, const Question& question, const Progress& progress) {
  return Trying(plugin, question, progress).ask();
}

Trial tell(PluginPolicy& plugin, const Question& question, const Progress& progress) {
  return Trying(plugin, question, progress).tell();
}

}  // namespace topolet
