#include "core/plugin/call/values_by_minor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/adjust.h>

#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace topolet::plugin {
namespace {

/// The enumerations of the headers that plugins are shown, by their names there.
const std::map<std::string, AbiValues> kShownEnums = {{"topolet_asks", AbiValues::kAsks},
                                                      {"topolet_cache_kind", AbiValues::kCacheKind},
                                                      {"topolet_certainty", AbiValues::kCertainty},
                                                      {"topolet_cpu_source", AbiValues::kCpuSource},
                                                      {"topolet_domain_kind", AbiValues::kDomainKind},
                                                      {"topolet_event_kind", AbiValues::kEventKind},
                                                      {"topolet_mode", AbiValues::kMode},
                                                      {"topolet_occasion", AbiValues::kOccasion},
                                                      {"topolet_os_device_kind", AbiValues::kOsDeviceKind},
                                                      {"topolet_pick_stage", AbiValues::kPickStage},
                                                      {"topolet_purpose", AbiValues::kPurpose},
                                                      {"topolet_qos", AbiValues::kQos},
                                                      {"topolet_why_shared", AbiValues::kWhyShared}};

/// The flags that plugins are shown, by how their names begin.
const std::map<std::string, AbiValues> kShownFlags = {{"TOPOLET_ENTRY_", AbiValues::kEntryFlags},
                                                      {"TOPOLET_EVENT_", AbiValues::kEventFlags},
                                                      {"TOPOLET_REQUEST_", AbiValues::kRequestFlags}};

/// Those that plugins say to the host, and what functions return.
const std::vector<std::string> kOtherEnums = {"topolet_io_class",    "topolet_log_level", "topolet_memory_mode",
                                              "topolet_option_type", "topolet_status",    "topolet_scheduler_class",
                                              "topolet_verdict_kind"};

struct Value {
  std::string name;
  std::uint32_t number;
};

std::vector<std::string> lines_of_layout() {
  std::ifstream file(TOPOLET_SOURCE_DIR "/sdk/abi/layout.c");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The enumerators of the headers, by the enumerations' names.
std::map<std::string, std::vector<Value>> all_enums() {
  const std::regex type("SIZE\\((topolet_\\w+), \\d+\\);");
  const std::regex enumerator("VALUE\\((\\w+), (\\d+)\\);");
  std::map<std::string, std::vector<Value>> enums;
  std::string current;
  for (const std::string& line : lines_of_layout()) {
    std::smatch match;
    if (std::regex_match(line, match, type)) current = match[1];
    if (std::regex_match(line, match, enumerator))
      enums[current].push_back({match[1], static_cast<std::uint32_t>(std::stoul(match[2]))});
  }
  return enums;
}

/// The flags of the headers whose names begin so.
std::vector<Value> flags_named(const std::string& prefix) {
  const std::regex macro("#define (" + prefix + "\\w+) (\\d+)u");
  std::vector<Value> flags;
  for (const std::string& line : lines_of_layout()) {
    std::smatch match;
    if (std::regex_match(line, match, macro))
      flags.push_back({match[1], static_cast<std::uint32_t>(std::stoul(match[2]))});
  }
  return flags;
}

std::uint32_t bit_of(std::uint32_t flag) {
  std::uint32_t bit = 0;
  while (1U << bit != flag) ++bit;
  return bit;
}

/// The host of a later minor: it knows what this one does, and `values` since then.
template <class... Values>
ValuesByMinor later_host(AbiValues of, Values... values) {
  return ValuesByMinor(kValuesByMinor).set_host_minor(1).add(of, 1, values...);
}

TEST(ValuesByMinor, HaveAllEnumeratorsOfTheHeaders) {
  const auto enums = all_enums();
  ASSERT_GE(enums.size(), kShownEnums.size() + kOtherEnums.size());
  for (const auto& [name, values] : enums) {
    const auto shown = kShownEnums.find(name);
    if (shown == kShownEnums.end()) {
      EXPECT_THAT(kOtherEnums, ::testing::Contains(name)) << "say which minor each of its values is of";
      continue;
    }
    for (const Value& value : values) {
      EXPECT_LE(kValuesByMinor.first_minor_of(shown->second, static_cast<std::int32_t>(value.number)),
                TOPOLET_ABI_MINOR)
          << value.name;
    }
  }
}

TEST(ValuesByMinor, HaveAllFlagsOfTheHeaders) {
  for (const auto& [prefix, of] : kShownFlags) {
    const std::vector<Value> flags = flags_named(prefix);
    EXPECT_FALSE(flags.empty()) << prefix;
    for (const Value& flag : flags) {
      EXPECT_LE(kValuesByMinor.first_minor_of(of, static_cast<std::int32_t>(bit_of(flag.number))), TOPOLET_ABI_MINOR)
          << flag.name;
    }
  }
}

TEST(ValuesByMinor, SayWhatIsShownInsteadAsAbiMdDoes) {
  const std::map<AbiValues, std::optional<std::int32_t>> expected = {
      {AbiValues::kAsks, TOPOLET_ASKS_UPDATE},
      {AbiValues::kCacheKind, TOPOLET_CACHE_UNIFIED},
      {AbiValues::kCertainty, TOPOLET_CERTAINTY_UNKNOWN},
      {AbiValues::kCpuSource, TOPOLET_CPUS_FROM_POOL},
      {AbiValues::kDomainKind, TOPOLET_DOMAIN_MACHINE},
      {AbiValues::kEntryFlags, std::nullopt},
      {AbiValues::kEventFlags, std::nullopt},
      {AbiValues::kEventKind, std::nullopt},
      {AbiValues::kMode, TOPOLET_MODE_FOREIGN},
      {AbiValues::kOccasion, TOPOLET_OCCASION_MOVE},
      {AbiValues::kOsDeviceKind, TOPOLET_OS_DEVICE_OTHER},
      {AbiValues::kPickStage, std::nullopt},
      {AbiValues::kPurpose, TOPOLET_PURPOSE_CHECK},
      {AbiValues::kQos, TOPOLET_QOS_BESTEFFORT},
      {AbiValues::kRequestFlags, std::nullopt},
      {AbiValues::kWhyShared, TOPOLET_SHARED_OTHER}};
  for (const auto& [of, instead] : expected)
    EXPECT_EQ(kValuesByMinor.shown_instead(of), instead) << static_cast<int>(of);
}

TEST(ValuesByMinor, KeepEachValueFromPluginsOfEarlierMinors) {
  for (const auto& [name, values] : all_enums()) {
    const auto shown = kShownEnums.find(name);
    if (shown == kShownEnums.end()) continue;
    const AbiValues of = shown->second;
    for (const Value& value : values) {
      const auto number = static_cast<std::int32_t>(value.number);
      const std::optional<std::int32_t> instead = kValuesByMinor.shown_instead(of);
      if (instead == number) continue;
      const ValuesByMinor later = later_host(of, number);
      EXPECT_FALSE(KnownValues(later, 0).has(of, number)) << value.name;
      EXPECT_EQ(KnownValues(later, 0).shown(of, number), instead.value_or(number)) << value.name;
      EXPECT_EQ(KnownValues(later, 1).shown(of, number), number) << value.name;
      EXPECT_TRUE(KnownValues(later, 7).has(of, number)) << value.name << ": the plugin is newer than the host";
    }
  }
}

TEST(ValuesByMinor, KeepEachFlagFromPluginsOfEarlierMinors) {
  for (const auto& [prefix, of] : kShownFlags) {
    const std::vector<Value> flags = flags_named(prefix);
    std::uint32_t all = 0;
    for (const Value& flag : flags) all |= flag.number;
    for (const Value& flag : flags) {
      const ValuesByMinor later = later_host(of, flag.number);
      EXPECT_EQ(KnownValues(later, 0).shown_flags(of, all), all & ~flag.number) << flag.name;
      EXPECT_EQ(KnownValues(later, 1).shown_flags(of, all), all) << flag.name;
    }
    EXPECT_EQ(KnownValues().shown_flags(of, ~0U), all) << "some are in no minor";
  }
}

TEST(ValuesByMinor, ShowNobodyWhatIsInNoMinor) {
  EXPECT_EQ(KnownValues().shown(AbiValues::kMode, 4711), TOPOLET_MODE_FOREIGN);
  EXPECT_EQ(KnownValues().shown(AbiValues::kMode, -1), TOPOLET_MODE_FOREIGN);
  EXPECT_FALSE(KnownValues().has(AbiValues::kEventKind, 200));
}

}  // namespace
}  // namespace topolet::plugin
