#include "core/plugin/host/option_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

topolet_plugin_entry entry_of(const topolet_option* options, std::uint32_t count) {
  topolet_plugin_entry entry{};
  entry.options = options;
  entry.option_count = count;
  entry.option_stride = sizeof(topolet_option);
  return entry;
}

topolet_option option(const char* name, std::int32_t type, const char* default_value) {
  return {{name, strlen(name)}, type, 0, {default_value, strlen(default_value)}, {nullptr, 0}, -5, 5, {nullptr, 0}};
}

TEST(OptionTable, RefusesMalformedTables) {
  const auto refusal = [](std::vector<topolet_option> options) {
    const auto table = read_option_table(entry_of(options.data(), static_cast<std::uint32_t>(options.size())), "numa");
    return table ? std::string("read") : table.error().message;
  };
  EXPECT_EQ(refusal({option("depth", TOPOLET_OPTION_INTEGER, "-5"), option("name", TOPOLET_OPTION_STRING, "")}),
            "read");
  EXPECT_EQ(refusal({option("keep", TOPOLET_OPTION_BOOL, "true"), option("keep", TOPOLET_OPTION_BOOL, "true")}),
            "option keep is declared twice");
  EXPECT_THAT(refusal({option("Keep Free", TOPOLET_OPTION_BOOL, "true")}), HasSubstr("'Keep Free'"));
  EXPECT_EQ(refusal({option("keep", 17, "any text")}), "read") << "a later type is a text";
  EXPECT_THAT(refusal({option("keep", TOPOLET_OPTION_BOOL, "yes")}), HasSubstr("'yes' is not true or false"));
  EXPECT_THAT(refusal({option("depth", TOPOLET_OPTION_INTEGER, "3x")}), HasSubstr("'3x' is not a whole number"));
  EXPECT_THAT(refusal({option("depth", TOPOLET_OPTION_INTEGER, "6")}), HasSubstr("must be between -5 and 5"));
  EXPECT_EQ(refusal({option("kind", TOPOLET_OPTION_CHOICE, "")}), "option kind has no choices");
  EXPECT_THAT(refusal({option("1x", TOPOLET_OPTION_BOOL, "true")}), HasSubstr("'1x'"));
}

TEST(OptionTable, RefusesWhatCannotBeRead) {
  const auto refusal = [](const topolet_plugin_entry& entry) {
    const auto table = read_option_table(entry, "numa");
    return table ? std::string("read") : table.error().message;
  };
  const auto refusal_of = [&](topolet_option changed) { return refusal(entry_of(&changed, 1)); };
  topolet_option kind = option("kind", TOPOLET_OPTION_STRING, "");
  kind.name = {nullptr, 4};
  EXPECT_EQ(refusal_of(kind), "the name of option number 1 is null, with a length of 4");
  kind.name = {nullptr, 0};
  EXPECT_EQ(refusal_of(kind), "option number 1 has no name");
  kind.name = {"kind", SIZE_MAX};
  EXPECT_THAT(refusal_of(kind), HasSubstr("the name of option number 1 has 18446744073709551615 bytes"));
  kind = option("kind", TOPOLET_OPTION_STRING, "");
  kind.default_value = {nullptr, 1};
  EXPECT_EQ(refusal_of(kind), "the default of option kind is null, with a length of 1");
  kind = option("kind", TOPOLET_OPTION_STRING, "");
  kind.help = {nullptr, 1};
  EXPECT_EQ(refusal_of(kind), "the help of option kind is null, with a length of 1");

  topolet_option choice = option("kind", TOPOLET_OPTION_CHOICE, "a");
  choice.allowed = {nullptr, 2};
  EXPECT_EQ(refusal_of(choice), "the list of allowed values of option kind is null, with a count of 2");
  const topolet_str choices[] = {{"a", 1}, {nullptr, 3}};
  choice.allowed = {choices, 2};
  EXPECT_EQ(refusal_of(choice), "allowed value 2 of option kind is null, with a length of 3");
  for (const char* no_text : {static_cast<const char*>(nullptr), ""}) {
    const topolet_str empty_choices[] = {{"a", 1}, {no_text, 0}};
    choice.allowed = {empty_choices, 2};
    EXPECT_EQ(refusal_of(choice), "allowed value 2 of option kind is empty");
    choice.default_value = {no_text, 0};
    EXPECT_EQ(refusal_of(choice), "allowed value 2 of option kind is empty");
  }
  choice.allowed = {choices, SIZE_MAX};
  EXPECT_THAT(refusal_of(choice), HasSubstr("the list of allowed values of option kind has 18446744073709551615"));

  const topolet_option good = option("kind", TOPOLET_OPTION_STRING, "");
  EXPECT_EQ(refusal(entry_of(nullptr, 1)), "its option table is null, with a count of 1");
  EXPECT_THAT(refusal(entry_of(&good, UINT32_MAX)), HasSubstr("its option table has 4294967295 elements"));
  topolet_plugin_entry entry = entry_of(&good, 1);
  for (const std::uint32_t stride : {0U, 8U, UINT32_MAX, 7 * 8U + 1}) {
    entry.option_stride = stride;
    EXPECT_THAT(refusal(entry), HasSubstr("its option table has elements of ")) << stride;
  }
}

TEST(OptionTable, StepsOverWhatANewerPluginAppended) {
  struct Newer {
    topolet_option known;
    std::uint64_t new_crashes[3];
  };
  const Newer options[2] = {{option("a", TOPOLET_OPTION_STRING, "1"), {}},
                            {option("b", TOPOLET_OPTION_STRING, "2"), {}}};
  topolet_plugin_entry entry = entry_of(&options[0].known, 2);
  entry.option_stride = sizeof(Newer);
  const auto table = read_option_table(entry, "numa");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_THAT(*table, SizeIs(2));
  EXPECT_EQ((*table)[1].name(), "numa.b");
  EXPECT_THAT((*table)[1].defaults, ElementsAre("2"));
}

}  // namespace
}  // namespace topolet::plugin
