// Every command and statement of docs/audit.md, on a database that `topolet simulate` has kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"
#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::ordered_json;
const std::string kData = TOPOLET_TEST_DATA "/audit/";

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

struct Question {
  std::string title;
  std::vector<std::string> commands;
};

/// A heading of the third level each, with blocks of `sh`. A command goes on until the next begins.
std::vector<Question> questions_of(const std::string& document) {
  std::vector<Question> questions;
  std::string block;  // its language; empty outside
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("### ", 0) == 0) {
      questions.push_back({line.substr(4), {}});
    } else if (line.rfind("```", 0) == 0) {
      block = line.substr(3);
    } else if (block == "sh" && line.rfind("topolet ", 0) == 0) {
      questions.back().commands.push_back(line);
    } else if (block == "sh") {
      questions.back().commands.back() += '\n' + line;
    }
  }
  return questions;
}

/// The times of the document in the story's: all of it happens on 2026-01-01, its last hour begins at noon.
std::string in_time_of_story(std::string text) {
  static constexpr std::pair<const char*, const char*> kTimes[] = {
      {"'yesterday 14:03'", "'2026-01-01T00:05:00Z'"},       {"'yesterday'", "'2026-01-01T00:00:00Z'"},
      {"--since yesterday", "--since 2026-01-01T00:00:00Z"}, {"'7d'", "'2026-01-01T00:00:00Z'"},
      {"--since 7d", "--since 2026-01-01T00:00:00Z"},        {"'1d'", "'2026-01-01T00:02:05Z'"},
      {"--since 1d", "--since 2026-01-01T00:02:05Z"},        {"'1h'", "'2026-01-01T12:00:00Z'"},
      {"--since 1h", "--since 2026-01-01T12:00:00Z"},        {"'now'", "'2026-01-01T13:00:00Z'"}};
  for (const auto& [from, to] : kTimes) replace_all(text, from, to);
  return text;
}

/// Returns true for columns that differ from run to run.
bool is_measured(const std::string& column) {
  return column == "file_mib" || (column.size() > 3 && column.substr(column.size() - 3) == "_us");
}

/// Rows as lines under a heading. Where times were measured, they come in any order.
std::string format_rows(const std::vector<ordered_json>& rows) {
  std::vector<std::string> lines;
  std::string heading;
  bool any_order = false;
  for (const ordered_json& row : rows) {
    std::string line;
    heading.clear();
    for (const auto& [column, value] : row.items()) {
      any_order = any_order || is_measured(column);
      heading += (heading.empty() ? "" : " | ") + column;
      const std::string text = value.is_null()       ? "NULL"
                               : is_measured(column) ? "MEASURED"
                               : value.is_string()   ? value.get<std::string>()
                                                     : value.dump();
      line += (&value == &row.front() ? "" : " | ") + text;
    }
    lines.push_back(line);
  }
  if (any_order) std::sort(lines.begin(), lines.end());
  std::string text = heading + '\n';
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::string format_answer(const std::string& answer) {
  std::vector<ordered_json> rows;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('{', 0) != 0) return answer;
    rows.push_back(ordered_json::parse(line));
  }
  return rows.empty() ? "no rows\n" : format_rows(rows);
}

constexpr std::int64_t kMidnightMs = 1'767'225'600'000;
constexpr std::int64_t kHourMs = 3'600'000;

store::DecidedRow recorded(const std::string& event, std::int64_t at_ms, const std::string& reason) {
  store::DecidedRow row;
  row.event = event;
  row.at_ms = at_ms;
  row.generation = 1000;
  row.holds = false;
  row.reason = reason;
  return row;
}

store::DecidedRow capacity(std::int64_t at_ms, const std::string& reason) {
  store::DecidedRow row = recorded("capacity", at_ms, reason);
  row.nodes = "1";
  return row;
}

class AuditDocument : public ::testing::Test {
 protected:
  AuditDocument() {
    const Said said = testing::simulate({"--topology", "pack:2 numa:1(memory=64GB) l3:2 core:2 pu:2", "--config",
                                         kData + "topolet.conf", "--workload", kData + "workload.jsonl", "--state-dir",
                                         state_.path()});
    EXPECT_EQ(said.code, 0) << said.text;
    add_what_no_simulation_has();
  }

  std::string answer(const std::string& command) const {
    std::string line = in_time_of_story(command);
    for (const char* rows : {"cpu", "at", "ps", "nodes", "moves", "denials", "audit", "query"}) {
      if (line.rfind("topolet " + std::string(rows) + ' ', 0) != 0 && line != "topolet " + std::string(rows)) continue;
      if (line.find("--format") == std::string::npos) line += " --format ndjson";
    }
    const std::string place = line.find("--database") == std::string::npos ? " --state-dir " + state_.path() : "";
    const Said said = shell("export TZ=UTC; cd " + state_.directory().path().string() + "; $" + line + place +
                            " --config " + kData + "topolet.conf");
    EXPECT_LE(said.code, 1) << command << ": " << said.text;
    return format_answer(said.text);
  }

  StateDir state_;

 private:
  /// Adds drift with an overlap, a plugin that is late, a database that could not be written, and what decisions are
  /// made with.
  void add_what_no_simulation_has() {
    auto store = store::Store::open({.directory = state_.path(), .boot_id = "simulated", .now_ms = kMidnightMs});
    ASSERT_TRUE(store.has_value()) << store.error().message;
    const std::int64_t minute = kHourMs / 60;
    const std::int64_t noon = kMidnightMs + 12 * kHourMs;
    for (const store::SetupRow& setup : {store::SetupRow{1, 1, kMidnightMs, "0.1.0", "placement.reserved-cpus = 0\n",
                                                         R"([{"name":"numa","version":"0.1.0","weight":1}])"},
                                         store::SetupRow{2, 900, noon + 50 * minute, "0.2.0",
                                                         "placement.reserved-cpus = 0\nnuma.policy = restricted\n",
                                                         R"([{"name":"numa","version":"0.2.0","weight":1}])"}}) {
      ASSERT_TRUE((*store)->add(setup).has_value());
    }
    store::DecidedRow drift =
        recorded("drift", noon + 51 * minute, "the kernel lets process 4711 run on CPUs 0-15 instead of 14-15");
    drift.pod_uid = "uid-web";
    drift.pod_namespace = "shop";
    drift.pod_name = "web";
    drift.container = "main";
    store::DecidedRow began = drift;
    began.event = "overlap";
    began.reason = "runs on CPU 1, which shop/cache/main has exclusively; its CPUs are set to 14-15 again";
    began.reason_code = "overlap-began";
    began.caused_by = 10;  // the newest decision on shop/cache/main
    store::DecidedRow over = began;
    over.at_ms += 40;
    over.reason = "over: it has left CPU 1, which shop/cache/main had exclusively; seen for 40 ms";
    over.reason_code = "overlap-ended";
    over.caused_by.reset();
    store::DecidedRow overruled = drift;
    overruled.event = "overruled";
    overruled.at_ms += 2000;
    overruled.reason =
        "something else than topolet sets its CPUs: the kernel has it on CPU 1 instead of 14-15, which the runtime had "
        "taken; they are set again, at most every 10 s";
    overruled.reason_code = "overruled-began";
    store::DecidedRow stuck = drift;
    stuck.event = "stuck";
    stuck.at_ms += 3000;
    stuck.reason =
        "it does not leave CPUs 14-15: device or resource busy; nobody else is given these CPUs alone until it does";
    stuck.reason_code = "stuck-began";
    store::DecidedRow late = recorded("denied", noon + 52 * minute, "plugin slow gave no answer");
    late.pod_uid = "uid-late";
    late.pod_namespace = "lab";
    late.pod_name = "late";
    late.container = "main";
    late.reason_code = "plugin-vote-lost";
    late.verdicts = R"({"candidates":3,"lost_votes":["slow: no answer within 50 ms"]})";
    late.phases = R"({"queued_us":10,"decide_us":50100,"plugins":{"numa":80,"slow":50000}})";
    for (const store::DecidedRow& row :
         {drift, late, recorded("quarantined", noon + 53 * minute, "plugin slow is not asked any more: late 3 times"),
          recorded("gap", noon + 54 * minute,
                   "the state database was not written in time for 150000 ms; changes acted on before they were "
                   "written: 2"),
          capacity(noon + 55 * minute, "node 1: 6000 of 8000 milli-CPUs (told by operator) until 2026-01-02T00:00:00Z"),
          capacity(noon + 56 * minute,
                   "node 1: 6000 of 8000 milli-CPUs (told by operator) for 60 s: 2 CPUs fewer can "
                   "be had for exclusive use"),
          began, over, overruled, stuck}) {
      ASSERT_TRUE((*store)->add(row).has_value());
    }
    ASSERT_TRUE((*store)
                    ->put_capacity(1, {{"milli", std::int64_t{6000}},
                                       {"until_ms", kMidnightMs + 24 * kHourMs},
                                       {"source", "operator"},
                                       {"below_since_ms", noon + 55 * minute},
                                       {"lowers", std::int64_t{1}}})
                    .has_value());
  }
};

TEST_F(AuditDocument, AnswersEveryQuestion) {
  const std::vector<Question> questions = questions_of(text_of(TOPOLET_TEST_DATA "/../../docs/audit.md"));
  EXPECT_GT(questions.size(), 30U);
  std::string answers;
  for (const Question& question : questions) {
    answers += "### " + question.title + '\n';
    EXPECT_FALSE(question.commands.empty()) << question.title;
    for (const std::string& command : question.commands) {
      std::string shown = answer(command);
      replace_all(shown, state_.directory().path().string(), "DIR");
      // So long before the test runs.
      shown = std::regex_replace(shown, std::regex("ended before [^ ,]*"), "ended before TIME");
      answers += "$ " + command + '\n' + shown;
    }
    answers += '\n';
  }
  const std::string file = kData + "answers.txt";
  if (std::getenv("TOPOLET_WRITE_GOLDEN") != nullptr) {
    std::ofstream(file) << answers;
    GTEST_SKIP() << "wrote " << file;
  }
  EXPECT_EQ(answers, text_of(file))
      << "if this change is meant, run with TOPOLET_WRITE_GOLDEN=1 and read the difference";
}

}  // namespace
}  // namespace topolet::testing
