// Answers of the queries in docs/audit.md and store/queries about a history with every event and every reason code,
// compared with those that the test computes from its own record of that history.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "core/engine/state/audit_event.hpp"
#include "store/store.hpp"
#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAreArray;

constexpr std::int64_t kBegan = 1'767'225'600'000;
constexpr std::int64_t kSecond = 1000;

std::string whole_text(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_FALSE(text.str().empty()) << file;
  return text.str();
}

/// The statement below a heading of docs/audit.md.
std::string statement_of(const std::string& heading) {
  static const std::string document = whole_text(TOPOLET_TEST_DATA "/../../docs/audit.md");
  const std::size_t question = document.find("### " + heading + '\n');
  EXPECT_NE(question, std::string::npos) << heading;
  const std::size_t begin = document.find("topolet query \"", question) + std::string("topolet query \"").size();
  std::string sql = document.substr(begin, document.find("\"\n", begin) - begin);
  // All of the history is younger than that.
  return std::regex_replace(sql, std::regex("moment\\('[^']*'\\)"), "0");
}

/// The codes that reason_codes.hpp lists.
std::vector<std::string> reason_codes() {
  const std::string header = whole_text(TOPOLET_TEST_DATA "/../../core/placement/reason_codes.hpp");
  std::vector<std::string> codes;
  const std::regex code("= \"([a-z-]+)\";");
  for (auto found = std::sregex_iterator(header.begin(), header.end(), code); found != std::sregex_iterator(); ++found)
    codes.push_back((*found)[1]);
  EXPECT_GT(codes.size(), 25U);
  return codes;
}

/// Reasons that gpu may give for the winner, and whether each is about a device that is not local to all CPUs.
const std::vector<std::pair<std::string, bool>> kGpuWords = {
    {"node 1: no GPU is local, distance 20; node 0: 1 of 1 GPU is local", true},
    {"node 0: 1 of 1 GPU is local; node 1: no GPU is local, distance 20", false},
    {"nodes 0-1: 1 of 2 GPUs is local, the other at distance 20; node 2: no GPU is local", true},
    {"node 2: 2 of 2 GPUs are local", false},
    {"", false},
};

/// A place for shared containers.
struct Place {
  CpuSet within;
  std::string nodes;
};
const std::vector<Place> kPlaces = {
    {CpuSet::range(0, 3), "0"}, {CpuSet::range(4, 7), "1"}, {CpuSet::range(8, 11), "2"}};

/// Why a container is where it is, as the test has decided it.
struct Standing {
  std::size_t place = 0;
  std::int64_t judged = 0;
  std::size_t gpu_words = 0;
};

struct MadeContainer {
  std::string pod;
  std::int64_t decision = 0;  ///< that it is held by
  Standing standing;
  Standing home;
  Standing before;
};

class AuditQueries : public ::testing::Test {
 protected:
  AuditQueries() {
    store_ = state_.open();
    codes_ = reason_codes();
    for (int pod = 0; pod < 12; ++pod) live(fmt::format("pod-{:02}", pod));
    add_events();
    store_.reset();
  }

  std::int64_t add(store::DecidedRow row) {
    now_ += kSecond;
    row.at_ms = now_;
    row.generation = ++generation_;
    const auto added = store_->add(row);
    EXPECT_TRUE(added.has_value()) << added.error().message;
    row.decision = *added;
    rows_[*added] = row;
    return *added;
  }
  store::DecidedRow row_of(const std::string& pod, const std::string& event, const std::string& code) const {
    store::DecidedRow row;
    row.event = event;
    row.pod_uid = "uid-" + pod;
    row.pod_namespace = "shop";
    row.pod_name = pod;
    row.container = "main";
    row.sandbox_id = "sandbox-" + pod;
    row.qos = "burstable";
    row.reason = event + " of " + pod;
    row.reason_code = code;
    row.holds = false;
    return row;
  }

  static std::string verdicts_of(const std::string& winner, const std::string& gpu_words) {
    return ordered_json{
        {"candidates", 2},
        {"best",
         {{{"nodes", winner},
           {"score", 100},
           {"words", {{"numa", "score", 100, "fits"}, {"gpu", "score", 0, gpu_words}}}},
          {{"nodes", "9"}, {"score", 50}, {"words", {{"gpu", "score", 1, "node 9: no GPU is local"}}}}}}}
        .dump();
  }

  /// The container has this row in place of what it had.
  void hold(MadeContainer& container, store::DecidedRow row) {
    const Place& place = kPlaces[container.standing.place];
    row.holds = true;
    row.mode = "shared";
    row.cpus = row.within = place.within;
    if (container.decision != 0) row.supersedes = container.decision;
    container.decision = add(row);
    const store::Columns columns = {{"state", "bound"},
                                    {"container_id", "id-" + container.pod},
                                    {"cpus", place.within.to_string()},
                                    {"pending_since_ms", now_},
                                    {"pod_uid", row.pod_uid},
                                    {"container", "main"},
                                    {"pod_namespace", "shop"},
                                    {"pod_name", container.pod},
                                    {"mode", "shared"},
                                    {"within", place.within.to_string()},
                                    {"phase", "running"}};
    EXPECT_TRUE(store_->put_allocation(container.decision, columns).has_value());
  }
  void judge(MadeContainer& container, const std::string& event, const std::string& code) {
    container.before = container.standing;
    container.standing = {random_() % kPlaces.size(), 0, random_() % kGpuWords.size()};
    // Whoever has to leave goes elsewhere.
    if (code == "made-room") container.standing.place = (container.home.place + 1 + random_() % 2) % kPlaces.size();
    const Place& place = kPlaces[container.standing.place];
    store::DecidedRow row = row_of(container.pod, event, code);
    row.nodes = place.nodes;
    row.verdicts = verdicts_of(place.nodes, kGpuWords[container.standing.gpu_words].first);
    hold(container, row);
    container.standing.judged = container.decision;
  }

  /// A life of moves, returns, moves that were undone, and changes that judge nothing.
  void live(const std::string& pod) {
    MadeContainer container;
    container.pod = pod;
    judge(container, "placed", "best-score");
    container.home = container.standing;
    const std::size_t steps = random_() % 12;
    for (std::size_t step = 0; step < steps; ++step) {
      switch (random_() % 5) {
        case 0:
          judge(container, "re-placed", "made-room");
          break;
        case 1: {
          container.standing = container.home;
          store::DecidedRow row = row_of(pod, "re-placed", "returned");
          row.nodes = kPlaces[container.home.place].nodes;
          // As older versions wrote it.
          if (random_() % 2 == 0) row.verdicts = R"({"candidates":0,"best":[]})";
          hold(container, row);
          break;
        }
        case 2:
          judge(container, "resized", "best-score");
          container.standing = container.before;
          hold(container, row_of(pod, "re-placed", "reverted"));
          break;
        case 3:
          hold(container, row_of(pod, "resized", "demand-changed"));
          break;
        default:
          add(row_of(pod, "drift", ""));
      }
    }
    containers_.push_back(container);
  }

  /// Each event and each code, with votes that were lost and candidates that were rejected.
  void add_events() {
    for (const std::string& event : engine::audit_event_words()) {
      for (const std::string& code : codes_) {
        store::DecidedRow row = row_of("event-pod", event, code);
        row.attempt = static_cast<std::uint32_t>(random_() % 3);
        row.caused_by = containers_[random_() % containers_.size()].decision;
        ordered_json verdicts{{"candidates", 3}, {"best", ordered_json::array()}};
        for (const char* reason : {"numa: full", "numa: too far", "gpu: none", "core: no CPU"}) {
          if (random_() % 2 == 0) verdicts["rejected"][reason] = 1 + random_() % 5;
        }
        for (const char* lost : {"gpu: no answer within 50 ms", "smt: threw", "gpu: was not asked to pick CPUs"}) {
          if (random_() % 4 == 0) verdicts["lost_votes"].push_back(lost);
        }
        row.verdicts = verdicts.dump();
        const std::int64_t decision = add(row);
        for (std::uint64_t times = random_() % 3; event == "denied" && times > 0; --times) {
          now_ += kSecond;
          EXPECT_TRUE(store_->count_repeat(decision, now_).has_value());
          ++repeats_[decision];
        }
        const std::vector<std::string> states = {"bound", "refused", "in_doubt", "timed_out", "crashed", "kept"};
        if (event == "placed") {
          store::OutcomeRow outcome{decision, now_ + 7, states[random_() % states.size()], "", 13, "said"};
          EXPECT_TRUE(store_->add(outcome).has_value());
          outcomes_.push_back(outcome);
        }
      }
    }
  }

  /// The rows as texts, sorted.
  std::vector<std::string> answer(const std::string& sql) const {
    const Said said = state_.query(sql, {"--format", "ndjson"});
    EXPECT_EQ(said.code, 0) << sql << said.text;
    std::vector<std::string> rows;
    std::istringstream lines(said.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind('{', 0) != 0) continue;
      std::string row;
      const ordered_json parsed = ordered_json::parse(line);
      for (const auto& [column, value] : parsed.items())
        row += (&value == &parsed.front() ? "" : "|") + (value.is_string() ? value.get<std::string>() : value.dump());
      rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  static std::string file(const std::string& name) { return whole_text(TOPOLET_QUERIES "/" + name); }
  template <class Row>
  std::vector<std::string> each_row(const std::function<bool(const store::DecidedRow&)>& is_meant, Row row) const {
    std::vector<std::string> rows;
    for (const auto& [decision, decided] : rows_) {
      if (is_meant(decided)) rows.push_back(row(decided));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  StateDir state_;
  std::unique_ptr<store::Store> store_;
  std::mt19937 random_{11};
  std::int64_t now_ = kBegan;
  std::uint64_t generation_ = 1;
  std::vector<std::string> codes_;
  std::vector<MadeContainer> containers_;
  std::map<std::int64_t, store::DecidedRow> rows_;
  std::map<std::int64_t, int> repeats_;
  std::vector<store::OutcomeRow> outcomes_;
};

std::function<bool(const store::DecidedRow&)> with_event(const std::set<std::string>& events) {
  return [events](const store::DecidedRow& row) { return events.count(row.event) != 0; };
}

TEST_F(AuditQueries, FindDevicesThatAreNotLocalWhereAContainerIsNow) {
  std::vector<std::string> expected;
  std::vector<std::string> why;
  for (const MadeContainer& container : containers_) {
    const Place& place = kPlaces[container.standing.place];
    const std::string about = fmt::format("shop|{}|main|{}|", container.pod, place.within.to_string());
    const auto& [words, is_elsewhere] = kGpuWords[container.standing.gpu_words];
    if (is_elsewhere) expected.push_back(about + words.substr(0, words.find(';')));
    const std::string nodes = rows_.at(container.standing.judged).nodes;
    why.push_back(about + "1|" + nodes + "|100|gpu|score|0|" + words);
    why.push_back(about + "1|" + nodes + "|100|numa|score|100|fits");
    why.push_back(about + "2|9|50|gpu|score|1|node 9: no GPU is local");
  }
  std::sort(why.begin(), why.end());
  ASSERT_GT(expected.size(), 2U);
  EXPECT_THAT(answer(statement_of("Which containers have a device that is not local?")), ElementsAreArray(expected));
  EXPECT_THAT(answer(file("devices-not-local.sql")), ElementsAreArray(expected));
  EXPECT_THAT(answer(file("why.sql")), ElementsAreArray(why));
}

TEST_F(AuditQueries, ExplainShowsTheCandidatesOfTheDecisionThatPutItThere) {
  for (const MadeContainer& container : containers_) {
    const Said by_decision = state_.topolet({"explain", "--json", "--decision", std::to_string(container.decision)});
    ASSERT_EQ(by_decision.code, 0) << by_decision.text;
    const auto verdicts = ordered_json::parse(by_decision.text)["verdicts"];
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0]["decision"], container.standing.judged) << container.pod;
  }
}

TEST_F(AuditQueries, CountDenialsAndVotes) {
  std::map<std::string, std::pair<int, int>> by_code;
  std::map<std::string, std::pair<int, std::int64_t>> by_plugin;
  std::map<std::string, std::array<int, 3>> lost;
  std::vector<std::string> denied;
  for (const auto& [decision, row] : rows_) {
    const auto verdicts = row.verdicts ? ordered_json::parse(*row.verdicts) : ordered_json::object();
    const int times = 1 + (repeats_.count(decision) != 0 ? repeats_.at(decision) : 0);
    std::set<std::string> plugins;
    if (verdicts.contains("rejected")) {
      for (const auto& [reason, candidates] : verdicts["rejected"].items()) {
        const std::string plugin = reason.substr(0, reason.find(':'));
        by_plugin[plugin].first += plugins.insert(plugin).second ? 1 : 0;
        by_plugin[plugin].second += candidates.get<std::int64_t>();
      }
    }
    if (verdicts.contains("lost_votes")) {
      for (const std::string vote : verdicts["lost_votes"]) {
        std::array<int, 3>& of = lost[vote.substr(0, vote.find(':'))];
        of[0] += 1;
        of[1] += vote.find("no answer within") != std::string::npos ? 1 : 0;
        of[2] += vote.find("was not asked to") != std::string::npos ? 1 : 0;
      }
    }
    if (row.event != "denied") continue;
    by_code[row.reason_code].first += 1;
    by_code[row.reason_code].second += times;
    const std::string begin = fmt::format("{}|shop|event-pod|main|{}|", times, row.reason);
    if (!verdicts.contains("rejected")) denied.push_back(begin + "null|null");
    if (!verdicts.contains("rejected")) continue;
    for (const auto& [reason, candidates] : verdicts["rejected"].items())
      denied.push_back(begin + reason + "|" + candidates.dump());
  }
  const auto sorted = [](std::vector<std::string> rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  std::vector<std::string> codes;
  for (const auto& [code, counts] : by_code)
    codes.push_back(fmt::format("{}|{}|{}", code, counts.first, counts.second));
  EXPECT_EQ(codes.size(), codes_.size());
  EXPECT_THAT(answer(statement_of("What was denied in the last day, by reason?")), ElementsAreArray(sorted(codes)));
  std::vector<std::string> rejecting;
  for (const auto& [plugin, counts] : by_plugin)
    rejecting.push_back(fmt::format("{}|{}|{}", plugin, counts.first, counts.second));
  EXPECT_THAT(answer(statement_of("Which plugin rejects most?")), ElementsAreArray(sorted(rejecting)));
  std::vector<std::string> late;
  for (const auto& [plugin, counts] : lost)
    late.push_back(fmt::format("{}|{}|{}|{}", plugin, counts[0], counts[1], counts[2]));
  EXPECT_THAT(answer(statement_of("How often was a plugin late?")), ElementsAreArray(sorted(late)));
  std::string without_time = file("denied-and-why.sql");
  without_time.erase(without_time.find(" n.last,"), std::string(" n.last,").size());
  EXPECT_THAT(answer(without_time), ElementsAreArray(sorted(denied)));
}

TEST_F(AuditQueries, FindEachEvent) {
  EXPECT_THAT(answer(statement_of("Was a plugin quarantined?")),
              ElementsAreArray(each_row(with_event({"quarantined", "quarantine-ended"}), [](const auto& row) {
                return fmt::format("{}|{}|{}", row.decision, row.event, row.reason);
              })));
  EXPECT_THAT(answer(statement_of("Did the kubelet and topolet contradict each other?")),
              ElementsAreArray(each_row(with_event({"conflict"}), [](const auto& row) {
                return fmt::format("{}|shop|{}|main||{}", row.decision, row.pod_name, row.reason);
              })));
  EXPECT_THAT(answer(statement_of("What drifted and was repaired?")),
              ElementsAreArray(each_row(with_event({"drift"}), [](const auto& row) {
                const bool is_there = row.pod_name != "event-pod";
                return fmt::format("{}|shop|{}|main|{}|{}", row.decision, row.pod_name, row.reason,
                                   is_there ? "" : "null");
              })));
  EXPECT_THAT(answer(statement_of("Did a container ever run on CPUs that another one had exclusively?")),
              ElementsAreArray(each_row(with_event({"overlap"}), [this](const auto& row) {
                const store::DecidedRow& owner = rows_.at(*row.caused_by);
                return fmt::format("{}|{}|shop|event-pod|main|{}|main|{}|{}", row.decision, row.reason_code,
                                   owner.pod_name, owner.cpus.to_string(), row.reason);
              })));
}

TEST_F(AuditQueries, FindWhatTheRuntimeSaid) {
  std::vector<std::string> refused;
  std::map<std::string, int> answers;
  for (const store::OutcomeRow& outcome : outcomes_) {
    ++answers[outcome.state];
    if (outcome.state == "bound" || outcome.state == "crashed" || outcome.state == "kept") continue;
    refused.push_back(fmt::format("{}|shop|event-pod|main|{}|13|said", outcome.decision, outcome.state));
  }
  std::sort(refused.begin(), refused.end());
  EXPECT_THAT(answer(statement_of("What did the runtime refuse, or not answer?")), ElementsAreArray(refused));
  std::vector<std::string> times;
  for (const auto& [state, count] : answers) times.push_back(fmt::format("|{}|{}|7.0|7", state, count));
  EXPECT_THAT(answer(file("answer-times.sql")), ElementsAreArray(times));
}

TEST_F(AuditQueries, CountRestarts) {
  int restarts = 0;
  for (const auto& [decision, row] : rows_)
    restarts += row.attempt > 0 && (row.event == "placed" || row.event == "unpinned") ? 1 : 0;
  const auto rows = answer(statement_of("Which containers are restarted again and again?"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], ::testing::StartsWith(fmt::format("shop|event-pod|main|{}|", restarts)));
}

}  // namespace
}  // namespace topolet::testing
