#include "core/plugin_checker/check_plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/file_exists.hpp"
#include "core/plugin_checker/case_steps.hpp"
#include "core/plugin_checker/cases.hpp"

namespace topolet::plugin_checker {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> cases = load_cases();
  for (std::vector<Case>& more : std::array{answer_cases(), state_cases(), neighbourhood_cases()}) {
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

const char* outcome_name(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kPassed:
      return "ok";
    case Outcome::Kind::kWarned:
      return "warning";
    case Outcome::Kind::kFailed:
      return "FAILED";
    case Outcome::Kind::kSkipped:
      return "skipped";
  }
  return "";
}

/// For a shell, so that a path with spaces can be pasted back.
std::string quoted(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string("/._-+=").find(c) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string in_quotes = "'";
  for (const char c : text) in_quotes += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return in_quotes + "'";
}

/// Runs the chosen cases and reports each as it ends.
class CheckRun {
 public:
  CheckRun(const CheckOptions& options, std::ostream& out) : options_(options), out_(out) {}

  int run(const std::vector<Case>& cases) {
    if (!options_.json) out_ << fmt::format("{}, seed {}\n", escaped(options_.file.native()), options_.seed);
    for (const Case& each : cases) {
      if (!options_.only_case.empty() && each.name != options_.only_case) continue;
      report(each, run_case(each));
    }
    finish();
    return count(Outcome::Kind::kFailed) + count(Outcome::Kind::kSkipped) > 0 ? kExitFailure : kExitSuccess;
  }

 private:
  Outcome run_in(const Case& each, CaseInput::Process process) const {
    return run_in_child(options_.time_limit, [&](const Progress& progress) {
      return each.run({options_.file, options_.seed, options_.requests, progress, options_.deprecated, process});
    });
  }

  /// Judges the second of two processes by the answers of the first.
  static Outcome compared(const Outcome& first, Outcome other) {
    if (other.kind != Outcome::Kind::kPassed) return other;
    if (other.note != first.note) {
      return Outcome::failed(first_difference(first.note, other.note, "in another process, given the same state"));
    }
    other.note = fmt::format("{} bytes of answers, twice", first.note.size());
    return other;
  }

  Outcome run_case(const Case& each) {
    // A plugin that does not load fails one case, not thirty.
    if (each.needs != Case::Needs::kFile && !loads_) return Outcome::skipped("it does not load");
    if (each.needs == Case::Needs::kCreated && !creates_) return Outcome::skipped("no instance could be created");
    Outcome outcome = run_in(each, CaseInput::Process::kFirst);
    if (each.runs == Case::Runs::kInTwoProcesses && outcome.kind == Outcome::Kind::kPassed) {
      outcome = compared(outcome, run_in(each, CaseInput::Process::kOther));
    }
    judge_processes(each, outcome);
    const bool failed = outcome.kind == Outcome::Kind::kFailed;
    if (each.name == "loads") loads_ = !failed;
    if (each.name == "create-defaults") creates_ = !failed;
    if (failed) outcome.arguments = command_line(each, outcome.arguments);
    return outcome;
  }

  /// A plugin that starts processes that it must not fails one case, not thirty: the others only if they found it
  /// alone.
  void judge_processes(const Case& each, Outcome& outcome) {
    const bool is_about_processes = each.name == kForkCase;
    const bool is_told = is_about_processes || fork_case_passed_ || !options_.only_case.empty();
    if (outcome.process_mismatch && is_told && (is_about_processes || outcome.kind != Outcome::Kind::kFailed)) {
      outcome = Outcome::failed(*std::exchange(outcome.process_mismatch, std::nullopt));
    }
    if (!is_about_processes) return;
    if (outcome.kind == Outcome::Kind::kPassed && !outcome.process_note.empty()) {
      outcome = Outcome::warned(std::exchange(outcome.process_note, {}));
    }
    fork_case_passed_ = outcome.kind != Outcome::Kind::kFailed;
  }

  std::string command_line(const Case& each, const std::string& arguments) const {
    const std::string seed = fmt::format("--seed {}", options_.seed);
    return fmt::format("{} {} --case {} {}", options_.command, quoted(options_.file.native()), each.name,
                       arguments.empty() ? seed : arguments);
  }

  void report(const Case& each, const Outcome& outcome) {
    counts_[static_cast<std::size_t>(outcome.kind)]++;
    if (options_.json) {
      results_.push_back({{"case", each.name},
                          {"what", each.what},
                          {"outcome", outcome_name(outcome.kind)},
                          {"note", outcome.note},
                          {"expected", outcome.expected},
                          {"actual", outcome.actual},
                          {"rerun", outcome.arguments}});
      return;
    }
    const bool failed = outcome.kind == Outcome::Kind::kFailed;
    out_ << fmt::format("{:<8} {:<26} {}\n", outcome_name(outcome.kind), each.name,
                        escaped(failed ? each.what : outcome.note));
    if (failed) {
      out_ << fmt::format(
          "         expected: {}\n         actual:   {}\n         seed:     {}\n         rerun:    {}\n",
          escaped(outcome.expected), escaped(outcome.actual), options_.seed, outcome.arguments);
    }
    out_.flush();
  }

  void finish() {
    const auto passed = count(Outcome::Kind::kPassed), warned = count(Outcome::Kind::kWarned);
    const auto failed = count(Outcome::Kind::kFailed), skipped = count(Outcome::Kind::kSkipped);
    if (!options_.json) {
      out_ << fmt::format("{} passed, {} with a warning, {} failed, {} skipped\n", passed, warned, failed, skipped);
      return;
    }
    const nlohmann::json document = {{"file", options_.file.native()},
                                     {"seed", options_.seed},
                                     {"passed", passed},
                                     {"warned", warned},
                                     {"failed", failed},
                                     {"skipped", skipped},
                                     {"cases", results_}};
    out_ << escaped_json(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) << '\n';
  }

  int count(Outcome::Kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }

  const CheckOptions& options_;
  std::ostream& out_;
  int counts_[4] = {};
  nlohmann::json results_ = nlohmann::json::array();
  bool loads_ = true;
  bool creates_ = true;
  bool fork_case_passed_ = false;
};

}  // namespace

std::vector<CaseDescription> list_cases() {
  std::vector<CaseDescription> described;
  for (const Case& each : all_cases()) described.push_back({each.name, each.what});
  return described;
}

int check_plugin(const CheckOptions& options, std::ostream& out) {
  const std::vector<Case> cases = all_cases();
  const auto is_wanted = [&](const Case& each) { return options.only_case.empty() || each.name == options.only_case; };
  if (std::none_of(cases.begin(), cases.end(), is_wanted)) {
    print_error_line(
        fmt::format("{}: there is no case '{}'; --list shows them all", options.command, options.only_case));
    return kExitUsage;
  }
  if (!file_exists(options.file)) {
    print_error_line(fmt::format("{}: there is no file {}", options.command, options.file.native()));
    return kExitUsage;
  }
  return CheckRun(options, out).run(cases);
}

}  // namespace topolet::plugin_checker
