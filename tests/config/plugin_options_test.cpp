// What the configuration makes of the options of plugins: their types, those that are repeated, required or secret, and
// what plugins are shown of all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/options.hpp"

namespace topolet::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

OptionSpec option_of(OptionType type, std::string value) {
  return {.section = "power", .key = "k", .type = type, .defaults = {std::move(value)}, .help = "What."};
}

OptionSpec named(std::string key, OptionSpec spec) {
  spec.key = std::move(key);
  return spec;
}

std::vector<PluginSection> power() {
  OptionSpec zones = named("zone", option_of(OptionType::kString, ""));
  zones.defaults.clear();
  zones.repeatable = true;
  OptionSpec token = named("token", option_of(OptionType::kString, ""));
  token.required = token.secret = true;
  OptionSpec pin = named("pin", option_of(OptionType::kInt, "0"));
  pin.secret = true;
  return {
      {"power",
       {named("every", option_of(OptionType::kDuration, "5s")), named("cache", option_of(OptionType::kSize, "64Mi")),
        named("share", option_of(OptionType::kFloat, "0.5")), named("names", option_of(OptionType::kList, "")),
        named("cpus", option_of(OptionType::kCpus, "")), zones, token, pin},
       1,
       "Saves power."}};
}

RawConfig raw_of(const std::string& text) {
  return read_raw({"--config", "t.conf"}, [&text](const auto&) { return Result<std::string>(text); });
}

ValidatedConfig validated(const std::string& power_lines) {
  return validate_config(raw_of("[plugins]\nenable = power\n[power]\n" + power_lines), power());
}

std::vector<std::string> mistakes_of(const std::string& power_lines) {
  std::vector<std::string> lines;
  for (const ConfigMistake& mistake : validated(power_lines).mistakes) lines.push_back(mistake.to_string());
  return lines;
}

std::string fault(const OptionSpec& spec, const std::string& value) {
  const Status fits = check_value(spec, value);
  return fits ? "" : fits.error().message;
}

TEST(PluginOption, IsCheckedAgainstItsType) {
  const OptionSpec number = option_of(OptionType::kFloat, "1");
  for (const char* fits : {"0", "-0.25", "1e-3", "12"}) EXPECT_EQ(fault(number, fits), "") << fits;
  for (const char* bad : {"", "x", "0.5s", "inf", "nan", "0,5"})
    EXPECT_THAT(fault(number, bad), HasSubstr("is not a number such as 2 or 0.25")) << bad;
  const OptionSpec size = option_of(OptionType::kSize, "1");
  for (const char* fits : {"0", "4096", "512Ki", "64Mi", "2Gi", "1k", "3M"}) EXPECT_EQ(fault(size, fits), "") << fits;
  for (const char* bad : {"", "Mi", "-1", "1.5Gi", "1 Gi", "1gi", "9223372036854775807Ki", "1GiB"})
    EXPECT_THAT(fault(size, bad), HasSubstr("is not an amount of bytes such as 4096")) << bad;
  const OptionSpec list = option_of(OptionType::kList, "");
  for (const char* fits : {"", "a", "a, b", "a b,c"}) EXPECT_EQ(fault(list, fits), "") << fits;
  EXPECT_THAT(fault(list, "a,,b"), HasSubstr("one of them is empty"));
  EXPECT_THAT(fault(list, "a,"), HasSubstr("one of them is empty"));
  const OptionSpec cpus = option_of(OptionType::kCpus, "");
  for (const char* fits : {"", "3", "0-3,8"}) EXPECT_EQ(fault(cpus, fits), "") << fits;
  EXPECT_THAT(fault(cpus, "3-"), HasSubstr("is not a CPU list"));
}

TEST(PluginOption, NamesItsBoundsAsTheyAreWritten) {
  OptionSpec size = option_of(OptionType::kSize, "1Mi");
  size.minimum = 1 << 20;
  size.maximum = 3LL << 30;
  EXPECT_EQ(fault(size, "4Ki"), "'4Ki' is out of range; it must be between 1Mi and 3Gi");
  OptionSpec number = option_of(OptionType::kFloat, "0");
  number.minimum = 0;
  EXPECT_EQ(fault(number, "-0.5"), "'-0.5' is out of range; it must be at least 0");
  number.minimum = INT64_MIN;
  number.maximum = 1;
  EXPECT_EQ(fault(number, "1.5"), "'1.5' is out of range; it must be at most 1");
  OptionSpec list = option_of(OptionType::kList, "");
  list.allowed = {"red", "green"};
  EXPECT_EQ(fault(list, "red, blue"), "'blue' is not red or green");
  EXPECT_EQ(fault(list, "green,red"), "");
}

TEST(PluginOption, IsGivenToPluginsInItsSimplestForm) {
  EXPECT_EQ(plain_value(option_of(OptionType::kDuration, ""), "1m30s"), "90000");
  EXPECT_EQ(plain_value(option_of(OptionType::kSize, ""), "64Mi"), "67108864");
  EXPECT_EQ(plain_value(option_of(OptionType::kList, ""), " a ,b c"), "a,b c");
  EXPECT_EQ(plain_value(option_of(OptionType::kCpus, ""), "8,0-2,3"), "0-3,8");
  EXPECT_EQ(plain_value(option_of(OptionType::kFloat, ""), "0.50"), "0.50");
  OptionSpec with_word = option_of(OptionType::kCpus, "none");
  with_word.allowed = {"none"};
  EXPECT_EQ(plain_value(with_word, "none"), "none");
}

TEST(PluginOptions, KeepEachLineOfARepeatedOneInOrder) {
  const ValidatedConfig config = validated("token = x\nzone = b east\nzone = a, west\n");
  EXPECT_THAT(config.mistakes, IsEmpty());
  std::vector<std::string> zones;
  const auto [first, last] = config.options.plugins.at(0).values.equal_range("zone");
  for (auto zone = first; zone != last; ++zone) zones.push_back(zone->second);
  EXPECT_THAT(zones, ElementsAre("b east", "a, west"));
  EXPECT_EQ(validated("token = x\n").options.plugins.at(0).values.count("zone"), 0U);
}

TEST(PluginOptions, NameARequiredOneThatIsNotThere) {
  EXPECT_THAT(mistakes_of("share = 1\n"),
              ElementsAre("t.conf:2: power.token is required by the plugin power; add a line token = VALUE to section "
                          "[power]"));
  EXPECT_THAT(mistakes_of("token = x\n"), IsEmpty());
}

TEST(PluginOptions, NeverQuoteASecret) {
  EXPECT_THAT(mistakes_of("token = x\npin = hunter2\n"), ElementsAre("t.conf:5: power.pin: *** is not a whole number"));
  EXPECT_THAT(mistakes_of("token = 'hunter2'\n"), ElementsAre(AllOf(HasSubstr("***"), Not(HasSubstr("hunter2")))));
  std::vector<PluginSection> sections = power();
  for (OptionSpec& spec : sections[0].options) spec.secret = true;
  sections[0].options[5].allowed = {"red", "green"};
  std::string mistakes;
  const RawConfig raw = raw_of(
      "[plugins]\nenable = power\n[power]\ntoken = x\nevery = hunter2\ncache = hunter2\nshare = hunter2\nnames = "
      "hunter2,,\ncpus = hunter2\nzone = hunter2\nzone = hunter2\n");
  for (const ConfigMistake& mistake : validate_config(raw, sections).mistakes) mistakes += mistake.to_string() + '\n';
  EXPECT_THAT(mistakes, AllOf(HasSubstr("*** is not red or green"), HasSubstr("zone = *** is already set in line")));
  EXPECT_THAT(mistakes, Not(HasSubstr("hunter2")));
}

TEST(PluginOptions, HaveNoSecretsInTheHelp) {
  std::vector<PluginSection> sections = power();
  sections[0].options[7].defaults = {"4711"};
  const std::string help = help_text(sections);
  EXPECT_THAT(help, AllOf(HasSubstr("--power.pin NUMBER (=***)"), Not(HasSubstr("4711"))));
  EXPECT_THAT(help,
              AllOf(HasSubstr("--power.token WORD "), HasSubstr("What. Required."), Not(HasSubstr("token WORD (="))));
  EXPECT_THAT(help, AllOf(HasSubstr("--power.every DURATION (=5s)"), HasSubstr("--power.cache BYTES (=64Mi)"),
                          HasSubstr("--power.share NUMBER (=0.5)"), HasSubstr("--power.zone WORD (=none)")));
  EXPECT_THAT(help, HasSubstr("[power] Saves power.:"));
}

TEST(PluginOptions, AreShownToAllPluginsButTheSecrets) {
  const OptionValues all = validated("token = hunter2\nzone = b\nzone = a\nnames = x , y\n").options.configuration;
  for (const auto& [name, value] : all) EXPECT_THAT(name + value, Not(HasSubstr("hunter2")));
  EXPECT_EQ(all.count("power.token"), 0U);
  EXPECT_THAT(all, ::testing::IsSupersetOf(
                       {Pair("power.every", "5000"), Pair("power.cache", "67108864"), Pair("power.names", "x,y"),
                        Pair("power.zone", "b"), Pair("power.zone", "a"), Pair("plugins.enable", "power"),
                        Pair("plugins.weight.power", "1"), Pair("placement.plugin-timeout", "10000"),
                        Pair("placement.isolated", "annotated")}));
  std::vector<std::string> zones;
  for (const auto& [name, value] : all) {
    if (name == "power.zone") zones.push_back(value);
  }
  EXPECT_THAT(zones, ElementsAre("b", "a"));
}

TEST(PluginOptions, SayHowLongADecisionMayTakeIfItFollowsTheTimeOfACall) {
  const auto decision_ms = [](const std::string& text) {
    return validate_config(raw_of("[placement]\n" + text), {})
        .options.configuration.find("placement.decision-ms")
        ->second;
  };
  EXPECT_EQ(decision_ms("deadline-ms = 1000\n"), "4000");
  EXPECT_EQ(decision_ms("deadline-ms = 1000\ndecision-ms = 300\n"), "300");
}

TEST(Secrets, AreHiddenInEntries) {
  const RawConfig raw = raw_of(
      "[daemon]\nkeep = 3d\n[power]\ntoken = hunter2\nshare = 0.7\n[ghost]\npassword = hunter2\nlimit = 3\nof = 1Gi\n");
  std::map<std::string, std::string> shown;
  for (const ConfigEntry& entry : without_secrets(raw.entries, power()))
    shown[entry.section + '.' + entry.key] = entry.value;
  EXPECT_THAT(shown,
              ElementsAre(Pair("daemon.keep", "3d"), Pair("ghost.limit", "3"), Pair("ghost.of", "1Gi"),
                          Pair("ghost.password", "***"), Pair("power.share", "0.7"), Pair("power.token", "***")));
}

TEST(Secrets, AreNoValuesThatAnybodyIsShown) {
  const std::vector<OptionSpec> options = power()[0].options;
  const auto shown = values_without_secrets(options, {{"pin", "4711"}, {"token", "hunter2"}, {"share", "0.7"}});
  EXPECT_THAT(shown, ElementsAre(Pair("share", "0.7")));
}

TEST(PluginName, IsNeverOneThatIsReserved) {
  for (const char* name : {"agent", "audit", "capacity", "cluster", "dra", "heal", "kubelet", "metrics", "record",
                           "replay", "runtime", "simulate", "store", "watch", "topolet", "topolet-power"}) {
    const Status fits = check_plugin_name(name);
    ASSERT_FALSE(fits) << name;
    EXPECT_THAT(fits.error().message, HasSubstr("it is reserved for topolet itself")) << name;
  }
  for (const char* name : {"load", "agents", "my-topolet", "numa"}) EXPECT_TRUE(check_plugin_name(name)) << name;
}

}  // namespace
}  // namespace topolet::config
