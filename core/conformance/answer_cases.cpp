#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include "core/conformance/cases.hpp"
#include "core/conformance/random_request.hpp"
#include "core/conformance/subject.hpp"
#include "core/conformance/trial.hpp"

namespace topolet {
namespace {

constexpr int kRandomPerMachine = 6;
constexpr std::chrono::milliseconds kSoon{1000};

/// A case that failed says how, and how to see just that again.
struct Failed {
  Mismatch mismatch;
  std::string arguments = {};
};

Outcome outcome_of(Failed failed) {
  Outcome outcome = Outcome::failed(std::move(failed.mismatch));
  outcome.arguments = std::move(failed.arguments);
  return outcome;
}

std::vector<Question> questions_on(const Ground& ground, std::uint64_t seed) {
  const auto view = std::make_shared<const TopologyView>(ground.machine.topology);
  std::vector<Question> questions;
  const auto add = [&](PolicyRequest request) {
    std::string name = fmt::format("request {} on machine {}", questions.size() + 1, ground.machine.name);
    questions.push_back({std::move(name), view, std::move(request)});
  };
  for (PolicyRequest& request : usual_requests(ground)) add(std::move(request));
  Dice dice(seed);
  for (int i = 0; i < kRandomPerMachine; ++i) add(random_request(ground, dice));
  return questions;
}

const Breach* find_breach(const Trial& trial, Breach::Kind kind) {
  const auto found = std::find_if(trial.breaches.begin(), trial.breaches.end(),
                                  [kind](const Breach& breach) { return breach.kind == kind; });
  return found == trial.breaches.end() ? nullptr : &*found;
}

/// Loads the plugin, makes one instance and gives it to `body`.
template <class Body>
Outcome with_instance(const CaseInput& input, Body&& body) {
  input.progress("load");
  const auto subject = Subject::load(input.file);
  if (!subject) return Outcome::failed({"a loadable file", subject.error().message});
  input.progress("create");
  const auto plugin = subject->create();
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  return body(*subject, **plugin);
}

struct Tally {
  std::uint32_t calls = 0;
  std::uint32_t given_up = 0;

  void add(const Trial& trial) {
    calls += trial.calls;
    given_up += trial.given_up;
  }
  Outcome outcome() const {
    if (calls > 0 && given_up == calls)
      return Outcome::warned(fmt::format("it gave up its vote in all of {} calls", calls));
    if (given_up > 0) return Outcome::passed(fmt::format("{} calls, {} given up", calls, given_up));
    return Outcome::passed(fmt::format("{} calls", calls));
  }
};

Outcome works_on(const Ground& ground, const CaseInput& input) {
  return with_instance(input, [&](const Subject&, PluginPolicy& plugin) {
    Tally tally;
    for (const Question& question : questions_on(ground, input.seed)) {
      for (const Trial& trial : {ask(plugin, question, input.progress), tell(plugin, question, input.progress)}) {
        tally.add(trial);
        if (const Breach* breach = find_breach(trial, Breach::Kind::kMisbehaved)) {
          return Outcome::failed(breach->mismatch);
        }
      }
    }
    return tally.outcome();
  });
}

Outcome never(Breach::Kind kind, const CaseInput& input) {
  return with_instance(input, [&](const Subject&, PluginPolicy& plugin) {
    Tally tally;
    for (const Ground& ground : make_grounds()) {
      for (const Question& question : questions_on(ground, input.seed)) {
        const Trial asked = ask(plugin, question, input.progress);
        tally.add(asked);
        if (const Breach* breach = find_breach(asked, kind)) return Outcome::failed(breach->mismatch);
        if (kind != Breach::Kind::kNonsense) continue;
        const Trial told = tell(plugin, question, input.progress);
        if (const Breach* breach = find_breach(told, kind)) return Outcome::failed(breach->mismatch);
      }
    }
    return Outcome::passed(fmt::format("{} calls", tally.calls));
  });
}

/// The first line in which two texts differ, of both.
Mismatch first_difference(const std::string& before, const std::string& after, const std::string& where) {
  auto [at, other] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto line_at = [](const std::string& text, std::ptrdiff_t position) {
    const auto offset = static_cast<std::size_t>(position);
    const std::size_t begin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
    const std::string line = text.substr(begin, std::min<std::size_t>(text.find('\n', offset) - begin, 200));
    return line.empty() ? std::string("nothing") : line;
  };
  return {fmt::format("the same answer as before, '{}'", line_at(before, at - before.begin())),
          fmt::format("'{}' {}", line_at(after, other - after.begin()), where)};
}

struct Asked {
  Question question;
  std::string answers;
};

std::vector<Asked> ask_everywhere(PluginPolicy& plugin, const CaseInput& input) {
  std::vector<Asked> asked;
  for (const Ground& ground : make_grounds()) {
    for (Question& question : questions_on(ground, input.seed)) {
      std::string answers = ask(plugin, question, input.progress).answers;
      asked.push_back({std::move(question), std::move(answers)});
    }
  }
  return asked;
}

Judgement judge_same(PluginPolicy& plugin, const std::vector<Asked>& before, const std::string& when,
                     const CaseInput& input) {
  for (const Asked& asked : before) {
    const std::string answers = ask(plugin, asked.question, input.progress).answers;
    if (answers != asked.answers) {
      return first_difference(asked.answers, answers, fmt::format("{} ({})", when, asked.question.name));
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

Outcome is_repeatable(const CaseInput& input) {
  return with_instance(input, [&](const Subject& subject, PluginPolicy& plugin) {
    const std::vector<Asked> before = ask_everywhere(plugin, input);
    if (auto mismatch = judge_same(plugin, before, "when asked again", input)) return Outcome::failed(*mismatch);
    const auto other = subject.create();
    if (!other) return Outcome::failed({"a second instance beside the first", other.error().message});
    wait_for_another_second();
    if (auto mismatch = judge_same(**other, before, "from a second instance, in another second", input)) {
      return Outcome::failed(*mismatch);
    }
    return Outcome::passed(fmt::format("{} requests, three times", before.size()));
  });
}

Outcome reads_larger_structs(const CaseInput& input) {
  return with_instance(input, [&](const Subject& subject, PluginPolicy& plugin) {
    const std::vector<Asked> before = ask_everywhere(plugin, input);
    const auto proxied = subject.create_proxied();
    if (!proxied) return Outcome::failed({"an instance", proxied.error().message});
    if (auto mismatch = judge_same(*proxied->policy, before, "where structs and strides are larger", input)) {
      return Outcome::failed(*mismatch);
    }
    for (const Asked& asked : before) {
      const Trial told = tell(*proxied->policy, asked.question, input.progress);
      if (!told.breaches.empty()) return Outcome::failed(told.breaches.front().mismatch);
    }
    return Outcome::passed(fmt::format("{} requests", before.size()));
  });
}

/// Asks as a host does that gives up on every call as it begins.
Outcome minds_late(const CaseInput& input) {
  return with_instance(input, [&](const Subject& subject, PluginPolicy&) {
    const auto proxied = subject.create_proxied();
    if (!proxied) return Outcome::failed({"an instance", proxied.error().message});
    PluginPolicy& late = *proxied->policy;
    std::chrono::steady_clock::duration longest{};
    for (const Ground& ground : make_grounds()) {
      const Question question = questions_on(ground, input.seed).front();
      const auto began = std::chrono::steady_clock::now();
      proxied->proxy->before_call = [&late] { late.give_up(); };
      for (const Trial& trial : {ask(late, question, input.progress), tell(late, question, input.progress)}) {
        for (const Breach& breach : trial.breaches) {
          if (breach.mismatch.came.find("threw") != std::string::npos) return Outcome::failed(breach.mismatch);
        }
      }
      longest = std::max(longest, std::chrono::steady_clock::now() - began);
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    if (ms > kSoon) {
      return Outcome::warned(
          fmt::format("it took {} ms for one request's calls to return, told TOPOLET_LATE", ms.count()));
    }
    return Outcome::passed();
  });
}

std::optional<Failed> judge_random(PluginPolicy& plugin, const Question& question, const CaseInput& input) {
  const Trial first = ask(plugin, question, input.progress);
  if (!first.breaches.empty()) return Failed{first.breaches.front().mismatch};
  const std::string again = ask(plugin, question, input.progress).answers;
  if (again != first.answers) {
    return Failed{first_difference(first.answers, again, fmt::format("when asked again ({})", question.name))};
  }
  const Trial told = tell(plugin, question, input.progress);
  if (!told.breaches.empty()) return Failed{told.breaches.front().mismatch};
  return std::nullopt;
}

/// Request i of seed s is the first of seed s + i, so that one can be asked alone.
Outcome answers_random_requests(const CaseInput& input) {
  return with_instance(input, [&](const Subject&, PluginPolicy& plugin) {
    const std::vector<Ground> grounds = make_grounds();
    for (std::uint32_t i = 0; i < input.requests; ++i) {
      Dice dice(input.seed + i);
      const Ground& ground = dice.one_of(grounds);
      const Question question{fmt::format("seed {} on machine {}", input.seed + i, ground.machine.name),
                              std::make_shared<const TopologyView>(ground.machine.topology),
                              random_request(ground, dice)};
      if (auto failed = judge_random(plugin, question, input)) {
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
  for (const Machine& machine : make_machines()) {
    cases.push_back({"machine-" + machine.name, "all calls return and throw nothing on such a machine", kNeeds,
                     [name = machine.name](const CaseInput& input) {
                       for (const Ground& ground : make_grounds()) {
                         if (ground.machine.name == name) return works_on(ground, input);
                       }
                       return Outcome::skipped("there is no such machine");
                     }});
  }
  const auto add = [&cases](std::string name, std::string what, std::function<Outcome(const CaseInput&)> run) {
    cases.push_back({std::move(name), std::move(what), kNeeds, std::move(run)});
  };
  const auto breach = [](Breach::Kind kind) { return [kind](const CaseInput& input) { return never(kind, input); }; };
  add("in-range", "scores from -100 to 100, known candidates, nothing said twice", breach(Breach::Kind::kNonsense));
  add("never-widens", "narrow, withhold, order and mems inside what was offered", breach(Breach::Kind::kWidens));
  add("never-empty", "narrow and mems leave something", breach(Breach::Kind::kLeavesNone));
  add("repeatable", "the same answer to the same request and state", is_repeatable);
  add("larger-structs", "the same answer when a later host's structs and strides are larger", reads_larger_structs);
  add("late", "calls return soon once the host answers TOPOLET_LATE", minds_late);
  add("random", "seeded random requests", answers_random_requests);
  return cases;
}

}  // namespace topolet
