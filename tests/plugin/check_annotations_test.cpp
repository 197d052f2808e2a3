#include "core/plugin/host/check_annotations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

/// Line by line from the first: a file that permits these names.
config::RawConfig permitting(const Strings& names) {
  config::RawConfig raw;
  raw.file = "conf";
  std::size_t line = 0;
  for (const std::string& name : names) raw.entries.push_back({"placement", "annotations", name, "conf", ++line});
  return raw;
}

Strings lines(const std::vector<config::ConfigMistake>& findings) {
  Strings texts;
  for (const config::ConfigMistake& finding : findings) texts.push_back(finding.to_string());
  return texts;
}

AnnotationFindings check(const Strings& names, const placement::KnownAnnotations& known) {
  const config::RawConfig raw = permitting(names);
  return check_permitted_annotations(raw, validate_config(raw, {}).options, known);
}

placement::KnownAnnotations known_with(const std::optional<Strings>& read) {
  placement::KnownAnnotations known = placement::core_annotations();
  known.add_plugin("smt", Strings{"smt"});
  known.add_plugin("other", read);
  return known;
}

TEST(PermittedAnnotations, AreMistakesWhereNobodyReadsThem) {
  const AnnotationFindings found =
      check({"cpus", "isolatd", "tenant", "tenat", "topolet.io/smt", "team", "team"}, known_with(Strings{"tenant"}));
  EXPECT_THAT(lines(found.mistakes),
              ElementsAre("conf:2: placement.annotations: unknown annotation isolatd; did you mean isolated?",
                          "conf:4: placement.annotations: unknown annotation tenat; did you mean tenant?",
                          "conf:5: placement.annotations: 'topolet.io/smt' is to be written without topolet.io/; did "
                          "you mean smt?",
                          "conf:6: placement.annotations: unknown annotation team: neither topolet nor an enabled "
                          "plugin reads it"));
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_EQ(found.status().error().code, Code::kInvalidArgument);
  EXPECT_NE(found.status().error().message.find("isolated?; conf:4: "), std::string::npos);
}

TEST(PermittedAnnotations, AreOnlyWarnedOfWhileAPluginDoesNotSayWhatItReads) {
  const AnnotationFindings found = check({"smt", "smtt"}, known_with(std::nullopt));
  EXPECT_THAT(found.mistakes, IsEmpty());
  EXPECT_TRUE(found.status());
  EXPECT_THAT(lines(found.warnings),
              ElementsAre("conf:2: placement.annotations: unknown annotation smtt; did you mean smt? (plugins that do "
                          "not say what they read: other)"));
}

TEST(PermittedAnnotations, MayBeAllOrNone) {
  for (const Strings& names : {Strings{}, {"all"}, {"none"}, {"all", "tem"}, {"none", "smt"}}) {
    const AnnotationFindings found = check(names, known_with(Strings{}));
    EXPECT_THAT(found.mistakes, IsEmpty());
    EXPECT_THAT(found.warnings, IsEmpty());
  }
}

}  // namespace
}  // namespace topolet::plugin
