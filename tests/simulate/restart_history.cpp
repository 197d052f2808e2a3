#include "tests/simulate/restart_history.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

constexpr std::string_view kRestart = R"({"op":"restart")";
constexpr const char* kRestartNow = R"({"op":"restart"})";
constexpr std::string_view kAnswer = R"({"op":"runtime")";
constexpr std::string_view kCreate = R"({"op":"create")";
constexpr std::string_view kClock = R"({"op":"clock")";
constexpr std::string_view kOffline = R"({"op":"offline")";
/// Longer than it takes until a container whose create was lost is found.
constexpr const char* kSoon = R"({"op":"clock","advance_s":3})";
/// Longer than the daemon leaves it at what it knows before it asks the runtime again.
constexpr const char* kAtLast = R"({"op":"clock","advance_s":15})";

bool is_restart(const std::string& line) { return line.rfind(kRestart, 0) == 0; }

class HistoryGenerator {
 public:
  HistoryGenerator(std::uint64_t seed, CpuSet cpus, bool has_load)
      : random_(seed), cpus_(std::move(cpus)), has_load_(has_load) {}

  Step next() {
    switch (below(has_load_ ? 19 : 15)) {
      case 0:
        return offline();
      case 1:
        return online();
      case 2:
        return {fmt::format(R"({{"op":"clock","advance_s":{}}})", 1 + below(below(2) == 0 ? 10 : 400))};
      case 3:
        return unsure_create();
      case 4:
        return about("stop", "", true);
      case 5:
      case 6:
        return about("exit", fmt::format(R"(,"exit_code":{})", below(3) == 0 ? 0 : 1), true);
      case 7:
        return remove_pod();
      case 8:
      case 9:
        return again();
      case 10:
      case 11:
        return resize();
      case 15:
      case 16:
        return about("load", fmt::format(R"(,"cpu_milli":{},"psi_some_permille":{})", below(3000), below(1000)), false);
      case 17:
        return {fmt::format(R"({{"op":"load","node":0,"effective_milli":{0},"used_milli":{0}}})", below(4000))};
      case 18:
        return below(8) == 0 ? Step{R"({"op":"release"})"} : Step{R"({"op":"clock","advance_s":61})"};
      default:
        return new_pod();
    }
  }

  Step all_online() {
    if (offline_.empty()) return {kAtLast};
    return {cpus_line("online", std::exchange(offline_, {})), kAtLast};
  }

 private:
  struct Pod {
    std::string create;
    bool guaranteed = false;
    bool runs = true;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::uint64_t some_size() { return 1 + below(1 + cpus_.size() / 4); }

  static std::string cpus_line(const char* op, const CpuSet& cpus) {
    return fmt::format(R"({{"op":"{}","cpus":"{}"}})", op, cpus.to_string());
  }

  Step offline() {
    CpuSet some;
    for (const std::uint32_t cpu : cpus_ - offline_) {
      if (some.size() <= below(2) && 2 * (offline_.size() + some.size() + 1) <= cpus_.size() && below(3) == 0) {
        some.insert(cpu);
      }
    }
    offline_ |= some;
    return some.empty() ? new_pod() : Step{cpus_line("offline", some)};
  }

  Step online() {
    CpuSet some;
    for (const std::uint32_t cpu : offline_) {
      if (below(2) == 0) some.insert(cpu);
    }
    offline_ -= some;
    return some.empty() ? new_pod() : Step{cpus_line("online", some)};
  }

  Step new_pod() {
    const std::string pod = fmt::format("p{}", ++made_);
    const std::uint64_t kind = below(5);
    const bool guaranteed = kind > 1;
    const std::uint64_t milli = kind == 0 ? 0 : below(4) == 0 ? 250 * (1 + below(8)) : 1000 * some_size();
    const std::string limit = guaranteed ? fmt::format(R"(,"cpu_limit_milli":{},"memory_limit":4096)", milli) : "";
    const std::string annotations = below(4) == 0 ? R"(,"annotations":{"topolet.io/smt":"isolate"})" : "";
    const std::string create =
        fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{}{}}})", pod, milli, limit);
    pods_[pod] = {create, guaranteed};
    const char* const qos = kind == 0 ? "besteffort" : kind == 1 ? "burstable" : "guaranteed";
    return {fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"{}"{}}})", pod, qos, annotations), create};
  }

  /// A create that is refused, or whose answer is lost; the kubelet may try again, but not before that is known.
  Step unsure_create() {
    Step step = new_pod();
    const bool lost = below(2) == 0;
    step.insert(step.begin() + 1, fmt::format(R"({{"op":"runtime","next":"{}"}})", lost ? "lost" : "refuse"));
    step.emplace_back(kSoon);
    if (below(2) == 0) step.push_back(step[2]);
    return step;
  }

  std::string known_pod() {
    auto pod = pods_.begin();
    std::advance(pod, static_cast<std::ptrdiff_t>(below(pods_.size())));
    return pod->first;
  }

  Step about(const char* op, const std::string& more, bool ends) {
    if (pods_.empty()) return new_pod();
    const std::string pod = known_pod();
    if (!pods_[pod].runs) return again();
    if (ends) pods_[pod].runs = false;
    return {fmt::format(R"({{"op":"{}","pod":"{}","container":"main"{}}})", op, pod, more)};
  }

  Step remove_pod() {
    if (pods_.empty()) return new_pod();
    const std::string pod = known_pod();
    pods_.erase(pod);
    return {fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod)};
  }

  /// The next attempt of a container that has ended.
  Step again() {
    for (auto& [pod, state] : pods_) {
      if (!std::exchange(state.runs, true)) return {state.create};
    }
    return new_pod();
  }

  Step resize() {
    if (pods_.empty()) return new_pod();
    if (!pods_[known_pod()].guaranteed) return about("update", R"(,"cpu_request_milli":700)", false);
    return about("update", fmt::format(R"(,"cpu_request_milli":{0},"cpu_limit_milli":{0})", 1000 * some_size()), false);
  }

  std::mt19937_64 random_;
  const CpuSet cpus_;
  const bool has_load_;
  CpuSet offline_;
  std::map<std::string, Pod> pods_;
  int made_ = 0;
};

std::string name_of(const RunningContainer& container) {
  return fmt::format("{}/{}#{}", container.pod, container.container, container.attempt);
}

std::string name_of(const placement::ContainerKey& key) {
  return fmt::format("{}/{}#{}", key.pod_uid, key.name, key.attempt);
}

/// Says which CPUs a container has for itself, all through one operation: those before it and those after it. One that
/// also runs on others has not been told yet, and shares them still.
class ExclusiveThroughout {
 public:
  ExclusiveThroughout(const Snapshot& before, const Snapshot& after) : before_(read(before)), after_(read(after)) {}
  CpuSet of(const std::string& name) const {
    const auto before = before_.find(name);
    const auto after = after_.find(name);
    CpuSet cpus;
    for (const auto& [known, end] : {std::pair(before, before_.end()), std::pair(after, after_.end())}) {
      if (known == end) continue;
      if (known->second.mode != "exclusive") return {};
      cpus |= known->second.cpus;
    }
    return cpus;
  }

 private:
  struct Held {
    std::string mode;
    CpuSet cpus;
  };
  static std::map<std::string, Held> read(const Snapshot& snapshot) {
    std::map<std::string, Held> held;
    for (const ContainerSnapshot& kept : snapshot.containers) held[name_of(kept.key)] = {kept.mode, kept.cpus};
    return held;
  }

  std::map<std::string, Held> before_;
  std::map<std::string, Held> after_;
};

/// The first who ran, at one of these moments between the pictures, on a CPU that another had for itself.
std::string overlaps(const Snapshot& before, const Snapshot& after,
                     const std::vector<std::vector<RunningContainer>>& moments) {
  const ExclusiveThroughout alone(before, after);
  for (const std::vector<RunningContainer>& running : moments) {
    for (const RunningContainer& one : running) {
      if (one.cpus.empty() || !one.cpus.is_subset_of(alone.of(name_of(one)))) continue;
      for (const RunningContainer& other : running) {
        const bool apart = !other.cpus.empty() && !one.cpus.intersects(other.cpus);
        if (apart || name_of(one) == name_of(other)) continue;
        return fmt::format("{} runs on CPUs {} beside {}, which has {} for itself", name_of(other),
                           other.cpus.to_string(), name_of(one), one.cpus.to_string());
      }
    }
  }
  return {};
}

/// Which attempts they are is left out over NRI, where topoletd counts them by itself: a create that has come to
/// nothing is one, and another one where topoletd was killed over it.
std::string end_of(SimulatedNode& node, SimulatedFront front) {
  const auto shown = [front](const std::string& name) {
    return front == SimulatedFront::kNri ? name.substr(0, name.rfind('#')) : name;
  };
  std::string text;
  for (const ContainerSnapshot& kept : node.snapshot().containers) {
    text += fmt::format("{} is {}, {} on {}, withheld {}, nodes {}\n", shown(name_of(kept.key)), kept.phase, kept.mode,
                        kept.cpus.to_string(), kept.withheld.to_string(), kept.mems.to_string());
  }
  std::vector<std::string> running;
  for (const RunningContainer& container : node.runtime().running()) {
    running.push_back(fmt::format("{} runs on {}\n", shown(name_of(container)), container.cpus.to_string()));
  }
  std::sort(running.begin(), running.end());
  return text + fmt::format("{}", fmt::join(running, ""));
}

}  // namespace

std::vector<std::string> lines_of(const History& history) {
  std::vector<std::string> lines;
  for (const Step& step : history) lines.insert(lines.end(), step.begin(), step.end());
  return lines;
}

namespace {

/// Returns the reasons. Over NRI a start waits only as long as the runtime does; where it failed, the kubelet makes the
/// container anew, as soon as no update of a topoletd that was killed can come any more.
std::string apply(SimulatedNode& node, const std::string& line) {
  std::string reasons = node.apply(line).reason;
  if (reasons.find("it could not be started") == std::string::npos) return reasons;
  node.let_pass(std::chrono::seconds(3));
  return reasons + node.apply(line).reason;
}

}  // namespace

History make_history(const RestartNode& node, std::uint64_t seed, int steps) {
  const bool has_load = std::find(node.flags.begin(), node.flags.end(), "--plugins.enable=load") != node.flags.end();
  HistoryGenerator chance(seed, SimulatedNode(node.machine, node.flags).snapshot().topology->allowed, has_load);
  History history;
  while (static_cast<int>(history.size()) < steps) history.push_back(chance.next());
  history.push_back(seed % 2 == 0 ? chance.all_online() : Step{kAtLast});
  return history;
}

HistoryResult run_history(const RestartNode& node, const History& history, SimulationOptions options,
                          const Pauses& pauses) {
  options.front = node.front;
  SimulatedNode simulated(node.machine, node.flags, options);
  std::vector<std::vector<RunningContainer>> moments;
  SimulatedRuntime& runtime = simulated.runtime();
  runtime.watch([&] { moments.push_back(runtime.running()); });
  HistoryResult seen;
  Snapshot before = simulated.snapshot();
  bool is_told = false;  // what to answer to the next create
  bool is_armed = false;
  bool is_stranded = false;  // some may still have to be told where they can go again
  for (const std::string& line : lines_of(history)) {
    moments.clear();
    const bool was_killed = apply(simulated, line).find("topoletd was killed") != std::string::npos;
    if (was_killed != is_armed || (was_killed && is_told)) seen.is_comparable = false;
    is_armed = is_restart(line) && line != kRestartNow;
    const std::size_t calls = moments.size();
    const auto pause = pauses.find(seen.calls.size());
    if (!is_restart(line) && pause != pauses.end()) simulated.let_pass(pause->second);
    const Snapshot after = simulated.snapshot();
    // With no CPU left for those who share there is none that they could go to.
    const bool has_none = before.ledger.pool.empty() || after.ledger.pool.empty();
    if (has_none || line.rfind(kClock, 0) == 0) is_stranded = has_none;
    const std::string on_the_way = is_stranded ? "" : overlaps(before, after, moments);
    const std::string in_the_end = is_stranded ? "" : overlaps(after, after, {runtime.running()});
    if (!in_the_end.empty()) seen.overlaps[seen.calls.size()] = in_the_end + " after " + line;
    if (!on_the_way.empty()) seen.overlaps[seen.calls.size()] = on_the_way + " during " + line;
    if (is_restart(line)) continue;
    const bool must_leave = line.rfind(kOffline, 0) == 0;
    if (seen.first_violation.empty() && !in_the_end.empty()) seen.first_violation = in_the_end + " after " + line;
    if (seen.first_violation.empty() && !must_leave) seen.first_violation = on_the_way;
    before = after;
    if (line.rfind(kAnswer, 0) == 0) is_told = true;
    seen.calls.push_back(is_told ? 0 : calls);
    seen.over_at.push_back(simulated.now());
    if (line.rfind(kCreate, 0) == 0 && calls > 0) is_told = false;
  }
  if (is_armed) seen.is_comparable = false;
  seen.end = end_of(simulated, node.front);
  return seen;
}

History with_restart(const History& history, const HistoryResult& without, std::uint64_t chance) {
  struct Moment {
    std::size_t step;
    std::size_t line;
    std::string restart;
  };
  std::vector<Moment> moments;
  std::size_t number = 0;
  for (std::size_t step = 0; step < history.size(); ++step) {
    for (std::size_t line = 0; line < history[step].size(); ++line) {
      moments.push_back({step, line + 1, kRestartNow});
      const std::size_t calls = without.calls[number];
      for (std::size_t call = 1; call <= calls; ++call) {
        for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
          moments.push_back({step, line, fmt::format(R"({{"op":"restart","at":"{}","calls":{}}})", at, call)});
        }
      }
      ++number;
    }
  }
  const Moment& moment = moments[chance % moments.size()];
  History with = history;
  Step& step = with[moment.step];
  step.insert(step.begin() + static_cast<std::ptrdiff_t>(moment.line), moment.restart);
  return with;
}

namespace {

History without_restarts(History history) {
  for (Step& step : history) std::erase_if(step, is_restart);
  return history;
}

/// Nothing if the restart took no time.
Pauses time_of_restart(const HistoryResult& with, const HistoryResult& without) {
  const auto [late, in_time] =
      std::mismatch(with.over_at.begin(), with.over_at.end(), without.over_at.begin(), without.over_at.end());
  if (late == with.over_at.end() || in_time == without.over_at.end() || *late < *in_time) return {};
  return {{static_cast<std::size_t>(late - with.over_at.begin()), *late - *in_time}};
}

std::string difference(const HistoryResult& with, const HistoryResult& without) {
  if (!with.is_comparable) return {};
  for (const auto& [line, overlaps] : with.overlaps) {
    if (without.overlaps.count(line) == 0) return overlaps + '\n';
  }
  if (with.end == without.end) return {};
  return fmt::format("without a restart it ends with\n{}with the restart it ends with\n{}", without.end, with.end);
}

}  // namespace

std::string difference(const RestartNode& node, const History& history, const HistoryResult& with,
                       const HistoryResult& without) {
  std::string found = difference(with, without);
  const Pauses pauses = time_of_restart(with, without);
  if (found.empty() || pauses.empty()) return found;
  return difference(with, run_history(node, without_restarts(history), {}, pauses));
}

std::string difference(const RestartNode& node, const History& history) {
  return difference(node, history, run_history(node, history), run_history(node, without_restarts(history)));
}

History minimised(const RestartNode& node, History history) {
  if (history.empty()) return history;
  const Step end = std::move(history.back());
  history.pop_back();
  for (std::size_t length = history.size() / 2; length > 0;) {
    const std::size_t before = history.size();
    for (std::size_t from = 0; from < history.size();) {
      const auto first = history.begin() + static_cast<std::ptrdiff_t>(from);
      const auto last = history.begin() + static_cast<std::ptrdiff_t>(std::min(from + length, history.size()));
      History less(history.begin(), first);
      less.insert(less.end(), last, history.end());
      less.push_back(end);
      if (difference(node, less).empty()) {
        from += length;
      } else {
        less.pop_back();
        history = std::move(less);
      }
    }
    // Lines that only removed ones needed are needed no more.
    if (length > 1 || history.size() == before) length /= 2;
  }
  history.push_back(end);
  return history;
}

}  // namespace topolet::simulate
