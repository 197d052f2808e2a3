#include "core/plugin_checker/run_in_child.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

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

std::string with_current_step(std::string what, const ChildEnd& end) {
  return end.current_step.empty() ? what : fmt::format("{}, in {}", what, end.current_step);
}

}  // namespace

Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body) {
  using Kind = ChildEnd::Kind;
  const ChildEnd end =
      topolet::run_in_child(time_limit, [&body](const Progress& progress) { return to_text(body(progress)); });
  switch (end.kind) {
    case Kind::kReturned:
      return read_outcome(end.text);
    case Kind::kThrew:
      return Outcome::failed({"the case to run to its end", "threw: " + end.text});
    case Kind::kCrashed:
      return Outcome::failed({"no crash", with_current_step("crashed with " + end.text, end)});
    case Kind::kExited:
      return Outcome::failed(
          {"every call to return", with_current_step("it ended the process with exit status " + end.text, end)});
    case Kind::kTimedOut:
      return Outcome::failed(
          {"every call to return", with_current_step(fmt::format("no answer within {} s", time_limit.count()), end)});
    case Kind::kNotStarted:
      break;
  }
  return Outcome::failed({"a child process", end.text});
}

}  // namespace topolet::plugin_checker
