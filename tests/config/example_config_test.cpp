#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "core/config/options.hpp"

namespace topolet::config {
namespace {

/// The example with the '#' before every key taken away.
std::string uncommented() {
  const auto text = read_text_file(TOPOLET_EXAMPLE_CONFIG);
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return std::regex_replace(*text, std::regex("(^|\n)#(?=[a-z])"), "$1");
}

RawConfig raw_of(const std::string& text) {
  return read_raw({}, [&text](const auto&) { return Result<std::string>(text); });
}

TEST(ExampleConfig, IsRightAsItStands) {
  const ValidatedConfig checked = validate_config(read_raw({"--config", TOPOLET_EXAMPLE_CONFIG}), {});
  EXPECT_THAT(checked.mistakes, testing::IsEmpty());
}

TEST(ExampleConfig, IsRightWithEveryOptionUncommented) {
  const ValidatedConfig checked = validate_config(raw_of(uncommented()), {});
  for (const ConfigMistake& mistake : checked.mistakes) ADD_FAILURE() << mistake.to_string();
  ASSERT_EQ(checked.options.plugins.size(), 1U);
}

TEST(ExampleConfig, ShowsEveryOptionAtItsDefault) {
  const RawConfig raw = raw_of(uncommented());
  for (const OptionSpec& spec : core_options({"numa"})) {
    std::vector<std::string> values;
    for (const ConfigEntry& entry : raw.entries) {
      if (entry.section + '.' + entry.key == spec.name()) values.push_back(entry.value);
    }
    // Installed elsewhere, the plugins are elsewhere; and nothing is enabled by default.
    if (spec.name() == "daemon.plugin-dir" || spec.name() == "plugins.enable") {
      EXPECT_EQ(values.size(), 1U) << spec.name();
    } else {
      EXPECT_EQ(values, spec.defaults) << spec.name();
    }
  }
}

}  // namespace
}  // namespace topolet::config
