#include "core/config/option_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::config {
namespace {

using std::chrono::milliseconds;

OptionSpec spec(OptionType type, std::vector<std::string> allowed = {}) {
  return {.section = "s", .key = "k", .type = type, .defaults = {"1"}, .allowed = std::move(allowed)};
}

std::string mistake(const OptionSpec& option, const std::string& value) {
  const Status fits = check_value(option, value);
  return fits.has_value() ? "" : fits.error().message;
}

TEST(Duration, AddsItsUnits) {
  EXPECT_EQ(*parse_duration("30s"), milliseconds(30000));
  EXPECT_EQ(*parse_duration("5m"), milliseconds(300000));
  EXPECT_EQ(*parse_duration("4m30s"), milliseconds(270000));
  EXPECT_EQ(*parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_duration("1h1m1s1ms"), milliseconds(3661001));
  EXPECT_EQ(*parse_duration("30d"), std::chrono::hours(30 * 24));
  EXPECT_EQ(*parse_duration("0s"), milliseconds(0));
  EXPECT_EQ(*parse_duration("0"), milliseconds(0));
}

TEST(Duration, IsRefusedOtherwise) {
  for (const char* bad : {"", "5", "m", "5 m", "-5m", "5M", "5w", "30s4m", "1h5d", "5m5m", "1.5m", "5mm",
                          "99999999999999999999s", "999999999999h"}) {
    EXPECT_FALSE(parse_duration(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_duration("soon").error().message, "'soon' is not a duration such as 30s, 5m, 4m30s, 30d or 500ms");
}

TEST(Socket, IsAnAbsolutePath) {
  EXPECT_EQ(*parse_socket("unix:///run/a.sock"), "/run/a.sock");
  EXPECT_EQ(*parse_socket("/run/a.sock"), "/run/a.sock");
  for (const char* bad : {"", "run/a.sock", "unix://run/a.sock", "unix:/run/a.sock", "tcp://host:1", "http:///x"}) {
    EXPECT_EQ(parse_socket(bad).error().message,
              "'" + std::string(bad) + "' is not the address of a unix socket; write unix:///absolute/path");
  }
  EXPECT_TRUE(parse_socket("/" + std::string(106, 'a')).has_value());
  EXPECT_FALSE(parse_socket("/" + std::string(107, 'a')).has_value());
}

TEST(Value, MustFitItsType) {
  EXPECT_EQ(mistake(spec(OptionType::kBool), "yes"), "'yes' is not true or false");
  EXPECT_EQ(mistake(spec(OptionType::kInt), "many"), "'many' is not a whole number");
  EXPECT_EQ(mistake(spec(OptionType::kInt), "3x"), "'3x' is not a whole number");
  EXPECT_EQ(mistake(spec(OptionType::kPath), "var/lib"), "'var/lib' is not an absolute path");
  EXPECT_EQ(mistake(spec(OptionType::kString, {"deny", "share"}), "refuse"), "'refuse' is not deny or share");
  EXPECT_EQ(mistake(spec(OptionType::kString, {"a", "b", "c"}), ""), "'' is not a, b or c");
  EXPECT_EQ(mistake(spec(OptionType::kCpus, {"none"}), "0-"),
            "'0-' is not a CPU list such as 0-3,8, or none: cannot read '0-' in the list '0-': expected a number or "
            "FIRST-LAST");
  for (const std::string bad : {"", "*", "kube-*", "Default", "a,b", "-a", "a/b", "kube_system"}) {
    EXPECT_EQ(mistake(spec(OptionType::kNamespace), bad),
              "'" + bad +
                  "' is not the name of a namespace, which has lower-case letters, digits and dashes; write one line "
                  "for each");
  }
  EXPECT_EQ(mistake(spec(OptionType::kCpus, {"none"}), ""), "'' is not a CPU list such as 0-3,8, or none");
}

TEST(Value, PassesIfItFits) {
  EXPECT_EQ(mistake(spec(OptionType::kBool), "true"), "");
  EXPECT_EQ(mistake(spec(OptionType::kInt), "-3"), "");
  EXPECT_EQ(mistake(spec(OptionType::kString), ""), "");
  EXPECT_EQ(mistake(spec(OptionType::kCpus, {"none"}), "none"), "");
  EXPECT_EQ(mistake(spec(OptionType::kCpus), "0-3,8"), "");
  EXPECT_EQ(mistake(spec(OptionType::kPath), "/var"), "");
  EXPECT_EQ(mistake(spec(OptionType::kName), "my-policy2"), "");
  EXPECT_EQ(mistake(spec(OptionType::kNamespace), "team-2"), "");
}

TEST(Value, MustBeInRange) {
  OptionSpec option = spec(OptionType::kInt);
  option.minimum = 0;
  option.maximum = 1000;
  EXPECT_EQ(mistake(option, "1001"), "'1001' is out of range; it must be between 0 and 1000");
  EXPECT_EQ(mistake(option, "-1"), "'-1' is out of range; it must be between 0 and 1000");
  EXPECT_EQ(mistake(option, "1000"), "");
  option.type = OptionType::kDuration;
  option.minimum = 1;
  option.maximum = 90000;
  EXPECT_EQ(mistake(option, "2m"), "'2m' is out of range; it must be between 1ms and 1m30s");
}

TEST(PluginName, IsNeverAPathNorASectionOfTheCore) {
  for (const char* bad :
       {"../evil", "a/b", "", "Numa", "2numa", "-x", "a.b", "daemon", "placement", "nri", "plugins"}) {
    EXPECT_NE(mistake(spec(OptionType::kName), bad), "") << bad;
  }
}

TEST(KeySuggestion, NamesTheClosestKey) {
  const std::vector<std::string> known = {"daemon.listen", "numa.policy", "numa.scope"};
  EXPECT_EQ(key_suggestion("numa.polcy", known), "; did you mean numa.policy?");
  EXPECT_EQ(key_suggestion("nmua.policy", known), "; did you mean numa.policy?");
  EXPECT_EQ(key_suggestion("placement.policy", known), "; did you mean numa.policy?");
  EXPECT_EQ(key_suggestion("listen", known, "--"), "; did you mean --daemon.listen?");
  for (const char* far : {"daemon.qqqqqqqqqqqq", "numa.xy", "daemon.police-officer", "", "x", "a.b"}) {
    EXPECT_EQ(key_suggestion(far, known), "") << far;
  }
}

}  // namespace
}  // namespace topolet::config
