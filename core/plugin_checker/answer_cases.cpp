#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "core/plugin/guard/barrier.hpp"
#include "core/plugin_checker/case_steps.hpp"
#include "core/plugin_checker/cases.hpp"
#include "core/plugin_checker/change_surroundings.hpp"
#include "core/plugin_checker/exercise.hpp"
#include "core/plugin_checker/footprint.hpp"
#include "core/plugin_checker/plugin_under_test.hpp"
#include "core/plugin_checker/random_request.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr std::chrono::milliseconds kSoon{1000};
/// The default of placement.deadline-ms.
constexpr int kDeadlineMs = 50;
/// How often each call is timed.
constexpr int kTimed = 3;
/// How often threads are looked at, and how far apart.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kBetweenLooks{5};
/// So much of the answers, to each third request, is compared between processes.
constexpr std::size_t kComparedBytes = 1 << 20;
constexpr std::size_t kComparedRequests = 3;

const Violation* find_violation(const ExerciseResult& result, Violation::Kind kind) {
  const auto found = std::find_if(result.violations.begin(), result.violations.end(),
                                  [kind](const Violation& violation) { return violation.kind == kind; });
  return found == result.violations.end() ? nullptr : &*found;
}

struct Tally {
  std::uint32_t calls = 0;
  std::uint32_t declined = 0;

  void add(const ExerciseResult& result) {
    calls += result.calls;
    declined += result.declined;
  }
  Outcome outcome() const {
    if (calls > 0 && declined == calls)
      return Outcome::warned(fmt::format("it declined to vote in all {} calls", calls));
    if (declined > 0) return Outcome::passed(fmt::format("{} calls, {} declined", calls, declined));
    return Outcome::passed(fmt::format("{} calls", calls));
  }
};

Outcome works_on(const Testbed& testbed, const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest&, plugin::PluginPolicy& plugin) {
    Tally tally;
    for (const TestRequest& test_request : test_requests_on(testbed, input.seed)) {
      for (const ExerciseResult& result : {exercise_decision(plugin, test_request, input.progress),
                                           exercise_events(plugin, test_request, input.progress)}) {
        tally.add(result);
        for (const auto kind : {Violation::Kind::kThrew, Violation::Kind::kBadStatus}) {
          if (const Violation* violation = find_violation(result, kind)) return Outcome::failed(violation->mismatch);
        }
      }
    }
    return tally.outcome();
  });
}

Outcome never_violates(Violation::Kind kind, const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest&, plugin::PluginPolicy& plugin) {
    Tally tally;
    for (const Testbed& testbed : make_testbeds()) {
      for (const TestRequest& test_request : test_requests_on(testbed, input.seed)) {
        const ExerciseResult asked = exercise_decision(plugin, test_request, input.progress);
        tally.add(asked);
        if (const Violation* violation = find_violation(asked, kind)) return Outcome::failed(violation->mismatch);
        if (kind != Violation::Kind::kInvalidReply) continue;
        const ExerciseResult after_events = exercise_events(plugin, test_request, input.progress);
        if (const Violation* violation = find_violation(after_events, kind))
          return Outcome::failed(violation->mismatch);
      }
    }
    return Outcome::passed(fmt::format("{} calls", tally.calls));
  });
}

struct Asked {
  TestRequest test_request;
  std::string answers;
};

std::vector<Asked> ask_everywhere(plugin::PluginPolicy& plugin, const CaseInput& input) {
  std::vector<Asked> asked;
  for (const Testbed& testbed : make_testbeds()) {
    for (TestRequest& test_request : test_requests_on(testbed, input.seed)) {
      std::string answers = exercise_decision(plugin, test_request, input.progress).answers;
      asked.push_back({std::move(test_request), std::move(answers)});
    }
  }
  return asked;
}

MaybeMismatch judge_same(plugin::PluginPolicy& plugin, const std::vector<Asked>& before, const std::string& when,
                         const CaseInput& input) {
  for (const Asked& asked : before) {
    const std::string answers = exercise_decision(plugin, asked.test_request, input.progress).answers;
    if (answers != asked.answers) {
      return first_difference(asked.answers, answers, fmt::format("{} ({})", when, asked.test_request.name));
    }
  }
  return std::nullopt;
}

/// A plugin may look at a clock that only shows seconds, such as time(): it goes by the kernel's ticks, and turns up to
/// one of them (10 ms at most) later than the clock that is waited on here.
void wait_for_another_second() {
  using Clock = std::chrono::system_clock;
  constexpr std::chrono::milliseconds kTurned{20};
  std::this_thread::sleep_until(std::chrono::floor<std::chrono::seconds>(Clock::now()) + std::chrono::seconds(1) +
                                kTurned);
}

/// The answers of a process that differs from the other one in all that must not matter.
Outcome answer_elsewhere(const CaseInput& input) {
  if (input.process == CaseInput::Process::kOther) change_surroundings(input.seed);
  return with_instance(input, [&](const PluginUnderTest&, plugin::PluginPolicy& plugin) {
    std::string answers;
    for (const Testbed& testbed : make_testbeds()) {
      const std::vector<TestRequest> test_requests = test_requests_on(testbed, input.seed);
      for (std::size_t i = 0; i < test_requests.size() && answers.size() < kComparedBytes; i += kComparedRequests) {
        answers += exercise_decision(plugin, test_requests[i], input.progress).answers;
        static_cast<void>(exercise_events(plugin, test_requests[i], input.progress));
      }
    }
    return Outcome::passed(std::move(answers));
  });
}

Outcome is_repeatable(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy& plugin) {
    const std::vector<Asked> before = ask_everywhere(plugin, input);
    if (auto mismatch = judge_same(plugin, before, "when asked again", input)) return Outcome::failed(*mismatch);
    const auto other = plugin_under_test.create();
    if (!other) return Outcome::failed({"a second instance beside the first", other.error().message});
    wait_for_another_second();
    MaybeMismatch mismatch;
    std::thread([&] {
      mismatch = judge_same(**other, before, "from a second instance, in another second and on another thread", input);
    }).join();
    if (mismatch) return Outcome::failed(*mismatch);
    return Outcome::passed(fmt::format("{} requests, three times", before.size()));
  });
}

Outcome reads_larger_structs(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy& plugin) {
    const std::vector<Asked> before = ask_everywhere(plugin, input);
    const auto proxied = plugin_under_test.create_proxied();
    if (!proxied) return Outcome::failed({"an instance", proxied.error().message});
    if (auto mismatch = judge_same(*proxied->policy, before, "where structs and strides are larger", input)) {
      return Outcome::failed(*mismatch);
    }
    for (const Asked& asked : before) {
      const ExerciseResult after_events = exercise_events(*proxied->policy, asked.test_request, input.progress);
      if (!after_events.violations.empty()) return Outcome::failed(after_events.violations.front().mismatch);
    }
    return Outcome::passed(fmt::format("{} requests", before.size()));
  });
}

/// Shows enumerators and flags that this version does not have. What is answered does not matter.
Outcome survives_unknown_values(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy&) {
    const auto proxied = plugin_under_test.create_proxied(ShownValues::kUnknown);
    if (!proxied) return Outcome::failed({"an instance", proxied.error().message});
    Tally tally;
    for (const Testbed& testbed : make_testbeds()) {
      for (const TestRequest& test_request : test_requests_on(testbed, input.seed)) {
        for (const ExerciseResult& result : {exercise_decision(*proxied->policy, test_request, input.progress),
                                             exercise_events(*proxied->policy, test_request, input.progress)}) {
          tally.add(result);
          if (const Violation* violation = find_violation(result, Violation::Kind::kThrew))
            return Outcome::failed(violation->mismatch);
        }
      }
    }
    return Outcome::passed(fmt::format("{} calls", tally.calls));
  });
}

/// Asks like a host that abandons every call as soon as it begins.
Outcome returns_soon_when_late(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy&) {
    const auto proxied = plugin_under_test.create_proxied();
    if (!proxied) return Outcome::failed({"an instance", proxied.error().message});
    plugin::PluginPolicy& late = *proxied->policy;
    std::chrono::steady_clock::duration longest{};
    for (const Testbed& testbed : make_testbeds()) {
      const TestRequest test_request = test_requests_on(testbed, input.seed).front();
      const auto began = std::chrono::steady_clock::now();
      proxied->proxy->before_call = [&late] { late.abandon_call(); };
      for (const ExerciseResult& result : {exercise_decision(late, test_request, input.progress),
                                           exercise_events(late, test_request, input.progress)}) {
        if (const Violation* violation = find_violation(result, Violation::Kind::kThrew)) {
          return Outcome::failed(violation->mismatch);
        }
      }
      longest = std::max(longest, std::chrono::steady_clock::now() - began);
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    if (ms > kSoon) {
      return Outcome::warned(
          fmt::format("the calls of one request took {} ms to return after TOPOLET_LATE", ms.count()));
    }
    return Outcome::passed();
  });
}

/// The time that calls took, by their names: the least of what was seen, as others use the machine, too.
class CallTimes {
 public:
  struct Taken {
    double cpu_ms;
    double ms;
  };

  void begin(std::string_view call) {
    end();
    call_ = call;
    began_ = {cpu_ms(), clock_ms()};
  }
  void end() {
    if (call_.empty()) return;
    const Taken taken{cpu_ms() - began_.cpu_ms, clock_ms() - began_.ms};
    const auto [known, is_new] = least_.try_emplace(std::exchange(call_, {}), taken);
    if (!is_new) known->second = {std::min(known->second.cpu_ms, taken.cpu_ms), std::min(known->second.ms, taken.ms)};
  }
  const std::map<std::string, Taken>& least() const { return least_; }

 private:
  static double clock_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::string call_;
  Taken began_{};
  std::map<std::string, Taken> least_;
};

bool some_thread_never_waits() {
  for (int i = 0; i < kLooks; ++i) {
    if (!another_thread_is_running()) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

Outcome is_in_time(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest&, plugin::PluginPolicy& plugin) {
    CallTimes times;
    const Progress timed = [&](std::string_view call) {
      input.progress(call);
      times.begin(call);
    };
    for (const Testbed& testbed : make_testbeds()) {
      const TestRequest test_request = test_requests_on(testbed, input.seed).front();
      for (int i = 0; i < kTimed; ++i) {
        (void)exercise_decision(plugin, test_request, timed);
        times.end();
        (void)exercise_events(plugin, test_request, timed);
        times.end();
      }
    }
    for (const auto& [call, taken] : times.least()) {
      if (taken.cpu_ms <= kDeadlineMs && taken.ms <= 2 * kDeadlineMs) continue;
      return Outcome::warned(
          fmt::format("{:.0f} ms of CPU time and {:.0f} ms by the clock in {}: with the default of "
                      "placement.deadline-ms, {}, its vote is lost",
                      taken.cpu_ms, taken.ms, call, kDeadlineMs));
    }
    if (some_thread_never_waits()) {
      return Outcome::warned("a thread of it does not wait, and uses a CPU while nothing is asked");
    }
    return Outcome::passed(fmt::format("{} calls", times.least().size()));
  });
}

/// Runs the code that the plugin registers for the end of the process. A library that is loaded as topoletd does it
/// stays until then.
void load_and_unload(const CaseInput& input) {
  input.progress("load");
  const std::string file = std::filesystem::absolute(input.file);
  void* library = nullptr;
  if (plugin::thrown_by([&] { library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); }) || library == nullptr) return;
  input.progress("unload");
  static_cast<void>(plugin::thrown_by([library] { ::dlclose(library); }));
}

/// Makes each kind of call. Processes are observed from outside.
Outcome starts_no_process(const CaseInput& input) {
  load_and_unload(input);
  input.progress("load");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::skipped("it does not load");
  input.progress("create");
  auto plugin = plugin_under_test->create();
  if (!plugin) return Outcome::skipped("no instance could be created");
  for (const Testbed& testbed : make_testbeds()) {
    const TestRequest test_request = test_requests_on(testbed, input.seed).front();
    (void)exercise_decision(**plugin, test_request, input.progress);
    (void)exercise_events(**plugin, test_request, input.progress);
  }
  input.progress("destroy");
  plugin->reset();
  return Outcome::passed();
}

std::optional<CaseFailure> judge_random(plugin::PluginPolicy& plugin, const TestRequest& test_request,
                                        const CaseInput& input) {
  const ExerciseResult first = exercise_decision(plugin, test_request, input.progress);
  if (!first.violations.empty()) return CaseFailure{first.violations.front().mismatch};
  const std::string again = exercise_decision(plugin, test_request, input.progress).answers;
  if (again != first.answers) {
    return CaseFailure{first_difference(first.answers, again, fmt::format("when asked again ({})", test_request.name))};
  }
  const ExerciseResult after_events = exercise_events(plugin, test_request, input.progress);
  if (!after_events.violations.empty()) return CaseFailure{after_events.violations.front().mismatch};
  return std::nullopt;
}

/// Request i of seed s is the first of seed s + i, so that one can be asked alone.
Outcome answers_random_requests(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest&, plugin::PluginPolicy& plugin) {
    const std::vector<Testbed> testbeds = make_testbeds();
    for (std::uint32_t i = 0; i < input.requests; ++i) {
      RandomSource rng(input.seed + i);
      const Testbed& testbed = rng.one_of(testbeds);
      const TestRequest test_request{fmt::format("seed {} on machine {}", input.seed + i, testbed.machine.name),
                                     std::make_shared<const plugin::AbiTopology>(testbed.machine.topology),
                                     random_request(testbed, rng)};
      if (auto failed = judge_random(plugin, test_request, input)) {
        failed->arguments = fmt::format("--seed {} --requests 1", input.seed + i);
        return outcome_of(*std::move(failed));
      }
    }
    return Outcome::passed(fmt::format("{} requests", input.requests));
  });
}

}  // namespace

std::vector<Case> answer_cases() {
  constexpr auto kNeeds = Case::Needs::kCreated;
  std::vector<Case> cases;
  cases.push_back({kForkCase,
                   "it starts no process that comes back from a call or a destructor, or that is left behind",
                   Case::Needs::kFile, starts_no_process});
  for (const Machine& machine : make_machines()) {
    cases.push_back({"machine-" + machine.name, "every call returns on such a machine, and none throws", kNeeds,
                     [name = machine.name](const CaseInput& input) {
                       for (const Testbed& testbed : make_testbeds()) {
                         if (testbed.machine.name == name) return works_on(testbed, input);
                       }
                       return Outcome::skipped("there is no such machine");
                     }});
  }
  const auto add = [&cases](std::string name, std::string what, std::function<Outcome(const CaseInput&)> run) {
    cases.push_back({std::move(name), std::move(what), kNeeds, std::move(run)});
  };
  const auto violation = [](Violation::Kind kind) {
    return [kind](const CaseInput& input) { return never_violates(kind, input); };
  };
  add("in-range", "scores from -100 to 100, known candidates, nothing set twice",
      violation(Violation::Kind::kInvalidReply));
  add("never-widens", "narrow, withhold, order and mems inside what was offered",
      violation(Violation::Kind::kOutsideOffer));
  add("never-empty", "narrow and mems are never empty", violation(Violation::Kind::kEmptySelection));
  add("repeatable", "the same answer to the same request and state", is_repeatable);
  cases.push_back({"other-process", "the same answers from another process, with another environment and layout",
                   kNeeds, answer_elsewhere, Case::Runs::kInTwoProcesses});
  add("larger-structs", "the same answer when a later host's structs and strides are larger", reads_larger_structs);
  add("unknown-values", "enumerators and flags of a later version neither crash it nor make it throw",
      survives_unknown_values);
  add("late", "calls return soon once the host answers TOPOLET_LATE", returns_soon_when_late);
  add("in-time", "calls return within the default deadline (a warning)", is_in_time);
  add("random", "seeded random requests break none of these rules", answers_random_requests);
  return cases;
}

}  // namespace topolet::plugin_checker
