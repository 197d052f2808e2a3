// The answers of the statements of docs/audit.md and store/queries about who held what, and when, against what the
// simulation itself had at each moment.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/audit/table_functions.hpp"
#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAreArray;
using Rows = std::vector<std::string>;

std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  if (text.str().empty()) throw std::runtime_error(path + " is empty");
  return text.str();
}

void replace_each(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// The statements below a heading of docs/audit.md.
std::vector<std::string> statements_of(const std::string& heading) {
  static const std::string document = file_text(TOPOLET_SOURCE_DIR "/docs/audit.md");
  const std::size_t begin = document.find("### " + heading + '\n');
  if (begin == std::string::npos) throw std::runtime_error("no question " + heading);
  const std::string answer = document.substr(begin, document.find("\n### ", begin) - begin);
  std::vector<std::string> statements;
  const std::string command = "topolet query \"";
  for (std::size_t at = answer.find(command); at != std::string::npos; at = answer.find(command, at)) {
    at += command.size();
    statements.push_back(answer.substr(at, answer.find("\"\n", at) - at));
  }
  return statements;
}
std::string statement_of(const std::string& heading) { return statements_of(heading).at(0); }

struct Moment {
  std::int64_t at_ms = 0;
  Snapshot snapshot;
};

struct AskedContainer {
  std::string name_space;
  std::vector<std::string> devices;
  bool is_special = false;  ///< by an annotation
};

constexpr const char* kDeviceNodes[] = {"0", "1", "2", "3"};
constexpr std::int64_t kMinute = 60'000;

/// Makes up containers that come, go, grow and fail, and CPUs that go and come back.
class StoryGenerator {
 public:
  std::vector<std::string> next() {
    const std::string old = fmt::format("p{:03}", below(asked_.size() + 1));
    switch (below(12)) {
      case 0:
        return {fmt::format(R"({{"op":"remove_pod","pod":"uid-{}"}})", old)};
      case 1:
        return {fmt::format(R"({{"op":"exit","pod":"uid-{}","container":"main","exit_code":1}})", old)};
      case 2:
        return {offline()};
      case 3:
        return offline_.empty() ? new_pod() : std::vector<std::string>{online()};
      case 4:
        return {fmt::format(R"({{"op":"update","pod":"uid-{}","container":"main","cpu_request_milli":{}}})", old,
                            100 * (1 + below(9)))};
      default:
        return new_pod();
    }
  }
  /// By pod.
  const std::map<std::string, AskedContainer>& asked() const { return asked_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  std::string offline() {
    const CpuSet cpu{static_cast<std::uint32_t>(4 + below(28))};
    offline_ |= cpu;
    return fmt::format(R"({{"op":"offline","cpus":"{}"}})", cpu.to_string());
  }
  std::string online() {
    const CpuSet cpus = std::exchange(offline_, CpuSet());
    return fmt::format(R"({{"op":"online","cpus":"{}"}})", cpus.to_string());
  }
  std::vector<std::string> new_pod() {
    const std::string name = fmt::format("p{:03}", asked_.size());
    AskedContainer asked{std::string("team-") + static_cast<char>('a' + below(3)), {}, false};
    const bool is_exclusive = below(2) == 0;
    const std::uint64_t milli = is_exclusive ? 1000 * (1 + below(6)) : 100 * (1 + below(20));
    if (below(3) == 0) asked.devices = {fmt::format("/dev/made{}", below(4))};
    asked.is_special = below(4) == 0;
    const std::string limits =
        is_exclusive ? fmt::format(R"(,"cpu_limit_milli":{},"memory_limit":1048576)", milli) : "";
    const std::string devices = asked.devices.empty() ? "" : fmt::format(R"(,"devices":["{}"])", asked.devices.front());
    const std::string annotation = asked.is_special ? R"("topolet.io/smt":"share")" : "";
    asked_[name] = asked;
    return {
        fmt::format(
            R"({{"op":"run_pod","pod":"uid-{0}","name":"{0}","namespace":"{1}","qos":"{2}","annotations":{{{3}}}}})",
            name, asked.name_space, is_exclusive ? "guaranteed" : "burstable", annotation),
        fmt::format(R"({{"op":"create","pod":"uid-{}","container":"main","cpu_request_milli":{}{}{}}})", name, milli,
                    limits, devices)};
  }

  std::mt19937 random_{5};
  CpuSet offline_;
  std::map<std::string, AskedContainer> asked_;
};

/// A history, a minute between one step and the next, and the database that tells of it.
struct Story {
  TempDir directory;
  std::map<std::string, AskedContainer> asked;  ///< by pod
  std::vector<Moment> moments;
  std::int64_t now_ms = 0;
  store::Database database;
};

std::unique_ptr<Story> told_story() {
  auto story = std::make_unique<Story>();
  const std::vector<std::string> flags = {"--plugins.enable=numa", "--plugins.enable=smt", "--plugins.enable=gpu",
                                          "--smt.isolate-siblings=exclusive", "--placement.reserved-cpus=0"};
  const std::filesystem::path state_dir = story->directory.path() / "state";
  {
    SimulatedNode node("pack:2 numa:2(memory=68719476736) l3:2 core:2 pu:2", flags, {.state_dir = state_dir});
    for (int i = 0; i < 4; ++i)
      node.apply(
          fmt::format(R"({{"op":"device","path":"/dev/made{0}","kind":"gpu","nodes":"{1}"}})", i, kDeviceNodes[i]));
    StoryGenerator chance;
    for (int step = 0; step < 150; ++step) {
      for (const std::string& line : chance.next()) node.apply(line);
      story->moments.push_back({node.now().count(), node.snapshot()});
      node.apply(R"({"op":"clock","advance_s":60})");
    }
    story->asked = chance.asked();
    story->now_ms = node.now().count();
  }
  auto opened = store::Database::open(state_dir / "state.db", store::Database::Access::kReadOnly);
  if (!opened) throw std::runtime_error(opened.error().message);
  story->database = *std::move(opened);
  if (!audit::add_table_functions(story->database)) throw std::runtime_error("the functions cannot be added");
  return story;
}

class AuditSql : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { story_ = told_story(); }
  static void TearDownTestSuite() { story_.reset(); }

  static std::string pod_of(const ContainerSnapshot& container) { return container.key.pod_uid.substr(4); }
  static const AskedContainer& asked(const ContainerSnapshot& container) { return story_->asked.at(pod_of(container)); }
  static std::string about(const ContainerSnapshot& container) {
    return fmt::format("{}|{}|main", asked(container).name_space, pod_of(container));
  }
  static const Story& story() { return *story_; }
  static const std::vector<Moment>& moments() { return story_->moments; }
  static const Snapshot& last() { return moments().back().snapshot; }
  static std::int64_t minute_of(std::int64_t at_ms) { return (at_ms - moments().front().at_ms) / kMinute; }

  /// The rows as texts, sorted.
  static Rows answer(std::string sql) {
    replace_each(sql, "'now'", std::to_string(story_->now_ms));
    sql = std::regex_replace(sql, std::regex("moment\\('[0-9]+[dh]'\\)"), "0");
    auto statement = story_->database.prepare(sql, "ask");
    if (!statement) throw std::runtime_error(statement.error().message + ": " + sql);
    Rows rows;
    while (true) {
      const auto more = statement->next();
      if (!more) throw std::runtime_error(more.error().message + ": " + sql);
      if (!*more) break;
      std::string row;
      for (int column = 0; column < static_cast<int>(statement->columns().size()); ++column)
        row += (column == 0 ? "" : "|") + (statement->is_null(column) ? "NULL" : statement->text(column));
      rows.push_back(row);
    }
    return sorted(std::move(rows));
  }
  static Rows sorted(Rows rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  static std::string query(const std::string& name) { return file_text(TOPOLET_SOURCE_DIR "/store/queries/" + name); }
  static Rows each(const Snapshot& snapshot, const std::function<std::string(const ContainerSnapshot&)>& row) {
    Rows rows;
    for (const ContainerSnapshot& container : snapshot.containers) {
      if (std::string text = row(container); !text.empty()) rows.push_back(std::move(text));
    }
    return sorted(std::move(rows));
  }

 private:
  static inline std::unique_ptr<Story> story_;
};

TEST_F(AuditSql, TellsWhatWasHeldAndWhoWasOnACpu) {
  std::size_t told = 0;
  for (const Moment& moment : moments()) {
    SCOPED_TRACE(moment.at_ms);
    const Snapshot& was = moment.snapshot;
    std::string held = query("held-at.sql");
    replace_each(held, "'2026-01-31 12:00'", std::to_string(moment.at_ms));
    const Rows expected = each(was, [](const ContainerSnapshot& c) {
      return fmt::format("{}|{}|{}|{}|{}", about(c), c.mode, c.cpus.to_string(), c.withheld.to_string(),
                         c.mems.to_string());
    });
    ASSERT_THAT(answer(held), ElementsAreArray(expected));
    told += expected.size();

    const auto cpu = static_cast<std::uint32_t>(moment.at_ms / kMinute % 32);
    std::string on_cpu = statement_of("Who was on CPU 12 yesterday at 14:03?");
    replace_each(on_cpu, "on_cpu(12, 'yesterday 14:03')", fmt::format("on_cpu({}, {})", cpu, moment.at_ms));
    ASSERT_THAT(answer(on_cpu), ElementsAreArray(each(was, [&](const ContainerSnapshot& c) -> std::string {
                  const bool runs = c.cpus.contains(cpu);
                  if (!runs && !c.withheld.contains(cpu)) return "";
                  return fmt::format("{}|{}|{}|{}", about(c), runs ? "runs" : "keeps it idle", c.mode,
                                     c.cpus.to_string());
                })));
  }
  EXPECT_GT(told, 1000U);
}

TEST_F(AuditSql, TellsWhoMoved) {
  Rows expected;
  for (auto moment = std::next(moments().begin()); moment != moments().end(); ++moment) {
    for (const ContainerSnapshot& now : moment->snapshot.containers) {
      for (const ContainerSnapshot& before : std::prev(moment)->snapshot.containers) {
        if (before.key != now.key || before.cpus == now.cpus) continue;
        expected.push_back(fmt::format("{}|{}|{}|{}", minute_of(moment->at_ms), about(now), before.cpus.to_string(),
                                       now.cpus.to_string()));
      }
    }
  }
  ASSERT_GT(expected.size(), 100U);
  // A container that was moved several times between two moments is told where it began and ended.
  const std::string sql = fmt::format(
      "WITH m AS MATERIALIZED (SELECT row_number() OVER () AS n, (moment(at) - {0} + 59999) / 60000 AS minute, * FROM "
      "moves({0}, {1})) "
      "SELECT a.minute, a.namespace, a.pod, a.container, a.from_cpus, b.to_cpus FROM m a JOIN m b USING (minute, pod) "
      "WHERE a.from_cpus <> b.to_cpus AND a.n = (SELECT min(n) FROM m c WHERE c.minute = a.minute AND c.pod = a.pod) "
      "AND b.n = (SELECT max(n) FROM m c WHERE c.minute = a.minute AND c.pod = a.pod)",
      moments().front().at_ms, moments().back().at_ms + kMinute);
  EXPECT_THAT(answer(sql), ElementsAreArray(sorted(expected)));
}

TEST_F(AuditSql, TellsWhatEachCpuIsUsedFor) {
  Rows machine;
  for (const topology::Pu& pu : last().topology->pus) {
    std::string owner = "NULL|NULL|NULL";
    for (const ContainerSnapshot& c : last().containers) {
      if (c.mode == "exclusive" && c.cpus.contains(pu.os_index)) owner = about(c);
    }
    machine.push_back(fmt::format("{}|{}|{}|{}", last().topology->nodes[pu.node].os_index,
                                  last().topology->cores[pu.core].first(), pu.os_index, owner));
  }
  EXPECT_THAT(answer(statement_of("What does the machine look like?")), ElementsAreArray(sorted(machine)));

  Rows held;
  for (const ContainerSnapshot& c : last().containers) {
    for (const std::uint32_t cpu : c.mode == "exclusive" ? c.cpus : CpuSet())
      held.push_back(fmt::format("{}|exclusive|{}", cpu, about(c)));
    for (const std::uint32_t cpu : c.withheld) held.push_back(fmt::format("{}|withheld|{}", cpu, about(c)));
  }
  ASSERT_FALSE(held.empty());
  std::string by_cpu = query("who-holds-cpus.sql");
  by_cpu.erase(by_cpu.rfind(';'));
  by_cpu.erase(0, by_cpu.find('\n'));
  const std::string single_cpus = fmt::format(
      "WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 31) "
      "SELECT n, kind, namespace, pod, container FROM number JOIN ({}) ON n BETWEEN first AND last",
      by_cpu);
  EXPECT_THAT(answer(single_cpus), ElementsAreArray(sorted(held)));
}

TEST_F(AuditSql, TellsWhoSpansNodesAndWhoSharesACache) {
  const topology::Topology& machine = *last().topology;
  std::string spans = statement_of("Which containers span two NUMA nodes, and why?");
  EXPECT_THAT(answer("SELECT namespace, pod, container, mode, cpus, nodes FROM (" + spans + ")"),
              ElementsAreArray(each(last(), [&](const ContainerSnapshot& c) -> std::string {
                const std::size_t nodes = machine.nodes_of(c.cpus).size();
                if (nodes < 2) return "";
                return fmt::format("{}|{}|{}|{}", about(c), c.mode, c.cpus.to_string(), nodes);
              })));
  for (const ContainerSnapshot& one : last().containers) {
    std::string beside = statement_of("Which containers share a last-level cache with pod ai/train-near?");
    replace_each(beside, "'ai'", "'" + asked(one).name_space + "'");
    replace_each(beside, "'train-near'", "'" + pod_of(one) + "'");
    CpuSet near;
    for (const CpuSet& l3 : machine.l3s) near |= l3.intersects(one.cpus) ? l3 : CpuSet();
    EXPECT_THAT(answer(beside), ElementsAreArray(each(last(), [&](const ContainerSnapshot& c) -> std::string {
                  if (c.key == one.key || !c.cpus.intersects(near)) return "";
                  return fmt::format("{}|{}|{}", about(c), c.mode, c.cpus.to_string());
                })));
  }
}

TEST_F(AuditSql, TellsWhereDevicesAre) {
  Rows all;
  Rows elsewhere;
  for (const ContainerSnapshot& c : last().containers) {
    for (const std::string& device : asked(c).devices) {
      const std::string nodes = kDeviceNodes[device.back() - '0'];
      const bool is_elsewhere = !last().topology->nodes_of(c.cpus).contains(device.back() - '0');
      all.push_back(fmt::format("{}|{}|{}|{}|{}", about(c), device, nodes, c.cpus.to_string(), is_elsewhere ? 1 : 0));
      if (is_elsewhere) elsewhere.push_back(fmt::format("{}|{}|{}|{}", about(c), c.cpus.to_string(), device, nodes));
    }
  }
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(answer(statement_of("Which devices does each container have, and where are they?")),
              ElementsAreArray(sorted(all)));
  EXPECT_THAT(answer(query("devices-elsewhere.sql")), ElementsAreArray(sorted(elsewhere)));
}

/// Returns the CPUs that containers may be given and nobody has for itself.
CpuSet pool_of(const Snapshot& snapshot) {
  CpuSet pool = snapshot.rules.allowed - snapshot.rules.reserved - snapshot.rules.isolated;
  for (const ContainerSnapshot& c : snapshot.containers)
    pool -= (c.mode == "exclusive" ? c.cpus : CpuSet()) | c.withheld;
  return pool;
}

TEST_F(AuditSql, TellsWhatIsFreeOnEachNode) {
  const CpuSet pool = pool_of(last());
  Rows usage;
  Rows cores;
  for (const topology::Node& node : last().topology->nodes) {
    const CpuSet here = node.cpus & last().rules.allowed;
    CpuSet exclusive;
    CpuSet withheld;
    std::size_t containers = 0;
    for (const ContainerSnapshot& c : last().containers) {
      if (c.mode == "exclusive") exclusive |= c.cpus & here;
      withheld |= c.withheld & here;
      containers += c.cpus.intersects(here) ? 1 : 0;
    }
    usage.push_back(fmt::format("{}|{}|{}|{}|{}|{}", node.os_index, exclusive.size(), withheld.size(),
                                (pool & here).size(), (last().rules.reserved & here).size(), containers));
    std::size_t all = 0;
    std::size_t free = 0;
    for (const CpuSet& core : last().topology->cores) {
      if (!core.intersects(node.cpus)) continue;
      ++all;
      free += core.is_subset_of(pool) ? 1 : 0;
    }
    cores.push_back(fmt::format("{}|{}|{}", node.os_index, all, free));
  }
  const std::string fullest = statement_of("Which NUMA node is fullest?");
  EXPECT_THAT(answer("SELECT node, exclusive, withheld, pool, reserved, containers FROM (" + fullest + ")"),
              ElementsAreArray(sorted(usage)));
  EXPECT_THAT(answer(statement_of("How many whole cores are free on each node?")), ElementsAreArray(sorted(cores)));
}

TEST_F(AuditSql, TellsHowSmallThePoolWas) {
  std::size_t least = SIZE_MAX;
  for (const Moment& moment : moments()) least = std::min(least, pool_of(moment.snapshot).size());
  const std::string smallest = statement_of("How small did the shared pool get?");
  EXPECT_EQ(answer("SELECT min(pool_cpus) FROM (" + smallest + ")"), Rows{std::to_string(least)});
}

TEST_F(AuditSql, TellsWhichNamespacesHaveExclusiveCpus) {
  const std::vector<std::string> statements = statements_of("Which namespaces have exclusive CPUs, now and over time?");
  const auto by_namespace = [](const Snapshot& snapshot) {
    std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
    for (const ContainerSnapshot& c : snapshot.containers) {
      if (c.mode != "exclusive") continue;
      auto& [exclusive, idle] = counts[asked(c).name_space];
      exclusive += c.cpus.size();
      idle += c.withheld.size();
    }
    return counts;
  };
  Rows now;
  for (const auto& [name, counts] : by_namespace(last()))
    now.push_back(fmt::format("{}|{}|{}", name, counts.first, counts.second));
  ASSERT_FALSE(now.empty());
  EXPECT_THAT(answer(statements.at(0)), ElementsAreArray(sorted(now)));

  Rows over_time;
  for (const Moment& moment : moments()) {
    for (const auto& [name, counts] : by_namespace(moment.snapshot))
      over_time.push_back(fmt::format("{}|{}|{}", moment.at_ms, name, counts.first));
  }
  std::string each_minute = statements.at(1);
  replace_each(each_minute, "moment('7d')", std::to_string(moments().front().at_ms));
  replace_each(each_minute, "6 * 3600000", std::to_string(kMinute));
  replace_each(each_minute, "moment('now')", std::to_string(moments().back().at_ms));
  replace_each(each_minute, "strftime('%Y-%m-%dT%H:%MZ', at / 1000, 'unixepoch') AS time", "at");
  EXPECT_THAT(answer(each_minute), ElementsAreArray(sorted(over_time)));

  // A minute is as it was at its beginning.
  std::map<std::string, double> hours;
  for (const Moment& moment : moments()) {
    for (const auto& [name, counts] : by_namespace(moment.snapshot)) {
      hours[name + "|exclusive"] += static_cast<double>(counts.first) / 60;
      hours[name + "|withheld"] += static_cast<double>(counts.second) / 60;
    }
  }
  Rows told;
  for (const std::string& row : answer(statement_of("How many CPU hours did each namespace have exclusively?"))) {
    const std::size_t end = row.rfind('|');
    EXPECT_NEAR(std::stod(row.substr(end + 1)), hours[row.substr(0, end)], 0.011) << row;
    if (row.substr(end + 1) != "0.0") told.push_back(row.substr(0, end));
  }
  std::erase_if(hours, [](const auto& hour) { return hour.second == 0; });
  EXPECT_EQ(told.size(), hours.size());
}

TEST_F(AuditSql, TellsWhenCpusWereOnline) {
  Rows expected;
  std::string before;
  for (const Moment& moment : moments()) {
    const std::string allowed = moment.snapshot.rules.allowed.to_string();
    if (allowed == before) continue;
    before = allowed;
    expected.push_back(fmt::format("{}|{}|0|", moment.snapshot.topology->pus.size(), allowed));
  }
  ASSERT_GT(expected.size(), 10U);
  // Devices change the machine too, and no CPU.
  const std::string changes = statement_of("When did CPUs go offline or come back?");
  EXPECT_THAT(answer("WITH seen AS MATERIALIZED (SELECT *, row_number() OVER () AS n FROM (" + changes +
                     ")) "
                     "SELECT online_cpus, allowed, reserved, isolated FROM seen a "
                     "WHERE allowed IS NOT (SELECT allowed FROM seen b WHERE b.n = a.n - 1)"),
              ElementsAreArray(sorted(expected)));
}

TEST_F(AuditSql, TellsWhoAskedForSpecialTreatment) {
  Rows expected;
  for (const auto& [pod, asked] : story().asked) {
    if (asked.is_special) expected.push_back(fmt::format("{}|{}|main", asked.name_space, pod));
  }
  ASSERT_FALSE(expected.empty());
  const std::string asking = statement_of("Who asked for special treatment?");
  EXPECT_THAT(answer("SELECT DISTINCT namespace, pod, container FROM (" + asking + ")"),
              ElementsAreArray(sorted(expected)));
}

}  // namespace
}  // namespace topolet::simulate
