#include "core/plugin_checker/run_in_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "core/plugin/guard/lent_pages.hpp"

namespace topolet::plugin_checker {
namespace {

std::string to_text(const Outcome& outcome) {
  const nlohmann::json json = {{"kind", static_cast<int>(outcome.kind)},
                               {"note", outcome.note},
                               {"expected", outcome.expected},
                               {"actual", outcome.actual},
                               {"arguments", outcome.arguments}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Outcome read_outcome(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {static_cast<Outcome::Kind>(json["kind"].get<int>()), json["note"], json["expected"], json["actual"],
          json["arguments"]};
}

std::string function_of(const std::string& step) { return step.substr(0, step.find(" (")); }

bool is_decision_call(const std::string& step) {
  const std::string function = function_of(step);
  return function == "propose" || function == "score" || function == "pick" || function == "adjust";
}

/// The first one on the way of a decision, if there is one.
std::string step_of_start(const StartedProcesses& started) {
  const auto& steps = started.steps;
  const auto decision = std::find_if(steps.begin(), steps.end(), is_decision_call);
  if (decision != steps.end()) return *decision;
  return steps.empty() ? "a call" : steps.front();
}

/// So many of the names as a line has room for.
std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  const std::size_t count = std::min(names.size(), kShown);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + printable(names[i], 64);
  return count < names.size() ? text + ", …" : text;
}

constexpr std::string_view kWroteToLent = "wrote to memory that it was lent to read, in ";

/// The step that the child is at, as it is reported if the plugin writes to what it was lent. In the child only, where
/// the handler of the signal reads it.
struct LentWriteReport {
  const Progress* progress = nullptr;
  std::array<char, 512> text{};
  std::size_t size = 0;
};
LentWriteReport g_lent_write;

void note_step(std::string_view step) {
  std::array<char, 512>& text = g_lent_write.text;
  const std::size_t shown = std::min(step.size(), text.size() - kWroteToLent.size());
  std::copy_n(kWroteToLent.begin(), kWroteToLent.size(), text.begin());
  std::copy_n(step.begin(), shown, text.begin() + kWroteToLent.size());
  g_lent_write.size = kWroteToLent.size() + shown;
}

/// Reports the write; on return it is made again, and ends the child.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code > 0) plugin::leave_faulty_access();
  if (info->si_code == SEGV_ACCERR && plugin::is_read_only_lent(info->si_addr)) {
    (*g_lent_write.progress)({g_lent_write.text.data(), g_lent_write.size});
  }
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);
}

/// A plugin that makes a handler of its own is not told apart.
void report_lent_writes(const Progress& progress) {
  g_lent_write.progress = &progress;
  note_step("a call");
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

/// The exit statuses of a child that ends before it has a result.
constexpr int kFailedAtOnce = 87;
constexpr int kEndedAsAProgram = 88;
constexpr std::string_view kFailure = "failed: ";
constexpr std::string_view kEndWithoutOutput = "the end of the process, which says nothing";
constexpr char kBetween = '\x1f';
/// The time that exit handlers have.
constexpr int kLongestEndS = 3;

/// Reads what fail_at_once() wrote.
Outcome read_failure(const std::string& step) {
  const std::string text = step.substr(kFailure.size());
  const std::size_t between = std::min(text.find(kBetween), text.size());
  return Outcome::failed({text.substr(0, between), text.substr(std::min(between + 1, text.size()))});
}

std::string with_current_step(std::string what, const ChildEnd& end) {
  return end.current_step.empty() ? what : fmt::format("{}, in {}", what, end.current_step);
}

Mismatch too_many(const ChildEnd& end) {
  const std::string first = end.started.steps.empty() ? "" : "; it first started one in " + step_of_start(end.started);
  return {fmt::format("fewer than {} at a time", end.text),
          with_current_step(fmt::format("{} were there", end.text), end) + first};
}

/// Finds the worst thing that a plugin did with processes and must not do.
MaybeMismatch judge_processes(const ChildEnd& end) {
  const StartedProcesses& started = end.started;
  if (!started.came_back_in.empty()) {
    return Mismatch{"a forked process to end, or to run another program, without coming back from the call",
                    fmt::format("a process that it forked came back from {}", started.came_back_in)};
  }
  if (end.kind == ChildEnd::Kind::kTooMany) return too_many(end);
  if (!started.left.empty()) {
    return Mismatch{"every process that it starts to end before the call returns, and to be waited for",
                    fmt::format("{} of those that it started, first in {}, left behind: {}", started.left.size(),
                                step_of_start(started), shown(started.left))};
  }
  if (started.count > 0 && is_decision_call(step_of_start(started))) {
    return Mismatch{"no process to be started on the way of a decision", "it started one in " + step_of_start(started)};
  }
  return std::nullopt;
}

std::string note_processes(const StartedProcesses& started) {
  if (started.count == 0) return {};
  return fmt::format("it started {} process{}, first in {}; each has ended and was waited for", started.count,
                     started.count == 1 ? "" : "es", step_of_start(started));
}

Outcome outcome_of(const ChildEnd& end, std::chrono::seconds time_limit) {
  using Kind = ChildEnd::Kind;
  if (end.current_step == kEndWithoutOutput) {
    if (end.kind != Kind::kCrashed || end.text != "SIGPIPE") return Outcome::passed();
    return Outcome::failed({"nothing written to standard output, which belongs to topolet",
                            "it writes to standard output at the end of the process"});
  }
  switch (end.kind) {
    case Kind::kReturned:
      return read_outcome(end.text);
    case Kind::kThrew:
      return Outcome::failed({"the case to run to its end", "threw: " + end.text});
    case Kind::kCrashed:
      if (end.text == "SIGALRM") {
        return Outcome::failed({fmt::format("an end within {} s, and no alarm of the plugin's own", kLongestEndS),
                                with_current_step("SIGALRM", end)});
      }
      if (end.current_step.starts_with(kWroteToLent)) {
        return Outcome::failed({"nothing written to what is lent as const", end.current_step});
      }
      return Outcome::failed({"no crash", with_current_step("crashed with " + end.text, end)});
    case Kind::kExited:
      if (end.text == std::to_string(kFailedAtOnce) && end.current_step.starts_with(kFailure)) {
        return read_failure(end.current_step);
      }
      if (end.text == std::to_string(kEndedAsAProgram)) return Outcome::passed();
      return Outcome::failed(
          {"every call to return", with_current_step("it ended the process with exit status " + end.text, end)});
    case Kind::kTimedOut:
      return Outcome::failed(
          {"every call to return", with_current_step(fmt::format("no answer within {} s", time_limit.count()), end)});
    case Kind::kTooMany:
      return Outcome::failed(*judge_processes(end));
    case Kind::kNotStarted:
      break;
  }
  return Outcome::failed({"a child process", end.text});
}

}  // namespace

void fail_at_once(const Progress& progress, const Mismatch& mismatch) {
  progress(fmt::format("{}{}{}{}", kFailure, mismatch.expected, kBetween, mismatch.actual));
  ::_exit(kFailedAtOnce);
}

void end_as_a_program(const Progress& progress, const std::string& step) {
  progress(step);
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  ::alarm(kLongestEndS);
  std::exit(kEndedAsAProgram);
}

void end_without_output(const Progress& progress) {
  // A pipe that nobody reads.
  std::array<int, 2> ends{-1, -1};
  std::signal(SIGPIPE, SIG_DFL);
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  end_as_a_program(progress, std::string(kEndWithoutOutput));
}

Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body) {
  const ChildEnd end = topolet::run_in_child(time_limit, [&body](const Progress& progress) {
    report_lent_writes(progress);
    return to_text(body([&progress](std::string_view step) {
      note_step(step);
      progress(step);
    }));
  });
  Outcome outcome = outcome_of(end, time_limit);
  outcome.process_mismatch = judge_processes(end);
  outcome.process_note = note_processes(end.started);
  return outcome;
}

}  // namespace topolet::plugin_checker
