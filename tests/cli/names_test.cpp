// Names that a terminal would obey, in everything that the command writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/utf8.hpp"
#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kHostile = "w\x1b[31m\nforged\t\u009b\u202e\u2066\u200f\u061c\u2028\x7f\\n";
constexpr const char* kShown = R"(w\x1b[31m\nforged\t\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\x7f\\n)";

/// Nothing but lines of visible characters, of which none comes from a name.
::testing::AssertionResult is_harmless(const std::string& text) {
  if (text.rfind("forged", 0) == 0 || text.find("\nforged") != std::string::npos) {
    return ::testing::AssertionFailure() << "a name makes a line: " << text;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character character = first_utf8_character(rest);
    const std::uint32_t code = character.code;
    const bool is_control = (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0);
    const bool is_mark = code == 0x61c || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                         (code >= 0x2066 && code <= 0x2069);
    if (character.bytes == 0 || is_control || is_mark) {
      return ::testing::AssertionFailure() << "at byte " << text.size() - rest.size() << ": " << text;
    }
    rest.remove_prefix(character.bytes);
  }
  return ::testing::AssertionSuccess();
}

/// Pods, namespaces, containers and uids of that name: one runs, one is moved, one is denied.
class NamesTest : public ::testing::Test {
 protected:
  NamesTest() {
    std::string lines;
    for (const auto& [uid, cpus] : std::vector<std::pair<std::string, int>>{{"a", 1}, {"b", 2}, {"c", 99}}) {
      const std::string pod = uid + kHostile;
      lines += json({{"op", "run_pod"}, {"pod", pod}, {"name", kHostile + uid}, {"namespace", kHostile}}).dump() + '\n';
      json create = {{"op", "create"}, {"pod", pod}, {"container", kHostile}, {"devices", {kHostile}}};
      if (uid != "a") create.update({{"cpu_limit_milli", 1000 * cpus}, {"memory_limit", 4096}});
      lines += create.dump() + '\n' + R"({"op":"clock","advance_s":60})" + '\n';
    }
    state_.directory().write("workload", lines + json({{"op", kHostile}}).dump() + '\n');
  }

  std::vector<std::string> simulation(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"--topology", "pack:2 numa:1 core:4 pu:2", "--workload", state_.file("workload"),
                                      "--plugins.enable=numa"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  StateDir state_;
};

TEST_F(NamesTest, AreEscapedByEveryListing) {
  const Said simulated = testing::simulate(simulation({"--explain", "--state-dir", state_.path()}));
  EXPECT_TRUE(is_harmless(simulated.text));
  EXPECT_THAT(simulated.text, HasSubstr(kShown));
  const std::string since = "--since=2026-01-01T00:00:00Z";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"ps"},
                                             {"ps", "--wide"},
                                             {"map"},
                                             {"nodes"},
                                             {"cpu", "0"},
                                             {"at", "now"},
                                             {"audit"},
                                             {"moves", since},
                                             {"denials", since},
                                             {"denials", since, "--by", "pod"},
                                             {"explain", kHostile + "b/" + kHostile},
                                             {"query", "SELECT pod, pod AS \"" + kHostile + "\" FROM audit"}}) {
    const Said said = state_.topolet(words);
    EXPECT_EQ(said.code, 0) << words[0] << ": " << said.text;
    EXPECT_TRUE(is_harmless(said.text)) << words[0];
    if (words[0] == "nodes") continue;  // on a made-up machine, no device has a name
    EXPECT_THAT(said.text, HasSubstr(kShown)) << words[0];
  }
}

TEST_F(NamesTest, StayWhatTheyAreInJson) {
  const Said simulated = testing::simulate(simulation({"--json", "--state-dir", state_.path()}));
  EXPECT_TRUE(is_harmless(simulated.text));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ps", "--json"}, {"audit", "--json"}, {"query", "SELECT pod FROM audit", "--json"}}) {
    const Said said = state_.topolet(words);
    EXPECT_TRUE(is_harmless(said.text)) << words[0];
    EXPECT_EQ(json::parse(said.text)[0]["pod"], kHostile + "a") << words[0];
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"audit", "--format", "ndjson"},
                                             {"map", "--json"},
                                             {"nodes", "--json"},
                                             {"explain", "--decision=1", "--json"}}) {
    EXPECT_TRUE(is_harmless(state_.topolet(words).text)) << words[0];
  }
  EXPECT_THAT(state_.query("SELECT pod FROM audit", {"--format", "csv"}).text, HasSubstr(kHostile))
      << "it is for programs";
}

TEST_F(NamesTest, MayBeNoUtf8) {
  {
    const auto store = state_.open();
    store::DecidedRow row;
    row.event = "denied";
    row.pod_name = "a\xff\x9b";
    row.container = "main";
    row.holds = false;
    row.reason = "no room\xe2\x80";
    ASSERT_TRUE(store->add(row).has_value());
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"audit"}, {"explain", "main"}, {"denials", "--since=1970-01-01"}}) {
    const Said said = state_.topolet(words);
    EXPECT_TRUE(is_harmless(said.text)) << words[0];
    EXPECT_THAT(said.text, HasSubstr(R"(a\xff\x9b)")) << words[0];
    EXPECT_THAT(said.text, HasSubstr(R"(no room\xe2\x80)")) << words[0];
  }
  EXPECT_EQ(json::parse(state_.topolet({"audit", "--json"}).text)[0]["pod"], "a\ufffd\ufffd");
}

TEST_F(NamesTest, AreEscapedInEveryError) {
  state_.open();
  const std::string bad = state_.directory().write(
      "bad\x1b.conf", "[" + std::string("a\x1b\u202e") + "]\n\u009b = 1\n[daemon]\nlisten\x1b = 2\nlog-level = \x1b\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{kHostile},
                                             {"plugin", kHostile},
                                             {"ps", "--x\x1b\u009b"},
                                             {"ps", "--format", kHostile},
                                             {"explain", kHostile},
                                             {"query", "SELECT \x1b"},
                                             {"query", "SELECT a FROM \"" + kHostile + '"'},
                                             {"at", kHostile},
                                             {"cpu", kHostile},
                                             {"ps", "--database", state_.file(kHostile)},
                                             {"status", "--socket", state_.file("none\x1b\n")},
                                             {"status", "--config", bad},
                                             {"config", "check", bad},
                                             {"config", "show", "--config", bad},
                                             {"config", "check", state_.file(kHostile)},
                                             {"simulate", "--topology", kHostile, "--workload", "/dev/null"},
                                             {"simulate", "--topology", "core:2", "--workload", state_.file(kHostile)},
                                             {"plugin", "new", kHostile},
                                             {"plugin", "check", state_.file(kHostile)}}) {
    const Said said = words[0] == "explain" || words[0] == "query" ? state_.topolet(words) : testing::topolet(words);
    EXPECT_NE(said.code, 0) << words[0];
    EXPECT_TRUE(is_harmless(said.text)) << words[0];
    EXPECT_THAT(said.text, ::testing::AnyOf(HasSubstr("\\x1b"), HasSubstr("?[31m"))) << words[0];
  }
  const Said daemon = run_to_its_end({TOPOLET_DAEMON, "--check-config", "--config", bad});
  EXPECT_NE(daemon.code, 0);
  EXPECT_TRUE(is_harmless(daemon.text));
  EXPECT_TRUE(is_harmless(run_to_its_end({TOPOLET_DAEMON, "--" + kHostile}).text));
}

}  // namespace
}  // namespace topolet::testing
