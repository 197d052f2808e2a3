// Problems that only the agent knows of.
#include "cluster/agent/kubernetes/own_illnesses.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace topolet::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OwnIllnessesTest : public ::testing::Test {
 protected:
  std::vector<std::string> found() const {
    std::vector<std::string> words;
    for (const Illness& one : own_illnesses(facts_))
      words.push_back(fmt::format("{} {}", to_string(one.severity), one.code));
    return words;
  }
  std::string sentence() const { return own_illnesses(facts_).at(0).sentence; }
  OwnFacts facts_{.node_name = "n1", .topology = {.has_node = true}, .is_late = true};
};

TEST_F(OwnIllnessesTest, AreNoneOfANodeThatIsPublished) {
  EXPECT_THAT(found(), IsEmpty());
  facts_.topology.has_node = std::nullopt;
  EXPECT_THAT(found(), IsEmpty()) << "topoletd is away since the start, and is told as such";
}

TEST_F(OwnIllnessesTest, AreANoticeWhileTheAgentStarts) {
  facts_.knows_pods = facts_.knows_object = facts_.knows_devices = facts_.is_late = false;
  EXPECT_THAT(found(), ElementsAre("notice not-published", "notice not-published", "notice not-published"));
  facts_.is_late = true;
  EXPECT_THAT(found(), ElementsAre("warning not-published", "warning not-published", "warning not-published"));
  facts_.pods_trouble = "no answer";
  EXPECT_EQ(sentence(), "nothing is published before its pods were listed: no answer");
}

TEST_F(OwnIllnessesTest, TellALackOfRightsOnce) {
  facts_.topology.trouble = "the API server answered 403";
  EXPECT_THAT(found(), ElementsAre("warning not-published"));
  facts_.topology.is_refused = true;
  EXPECT_THAT(found(), ElementsAre("warning may-not-publish"));
  facts_.missing_rights = {"list pods"};
  EXPECT_THAT(found(), ElementsAre("warning may-not-publish"));
  EXPECT_THAT(sentence(), HasSubstr("topolet-agent may not list pods"));
}

TEST_F(OwnIllnessesTest, NameWhoWritesTheSameObject) {
  facts_.topology.other_writer = "koordlet";
  EXPECT_THAT(found(), ElementsAre("warning other-writer"));
  EXPECT_THAT(sentence(), HasSubstr("koordlet has changed its NodeResourceTopology"));
}

TEST_F(OwnIllnessesTest, SayThatDevicesAreMissingFromWhatIsPublished) {
  facts_.devices_trouble = "no such socket";
  EXPECT_THAT(found(), ElementsAre("warning devices-unknown"));
  EXPECT_THAT(sentence(), HasSubstr("no such socket"));
}

TEST_F(OwnIllnessesTest, SayThatATokenEnds) {
  facts_.token_trouble = "it ends at noon";
  EXPECT_THAT(found(), ElementsAre("warning token-not-renewed"));
}

TEST_F(OwnIllnessesTest, HaveWhatTopoletdSaysOfItsSetupWhileItIsThere) {
  for (const char* word : kSetupWarnings) facts_.topology.setup_warnings[word] = "see the manual";
  EXPECT_THAT(found(), ElementsAre("warning kubelet-static", "warning node-name", "warning zone-annotation"));
  facts_.hears_topoletd = false;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(OwnIllnessesTest, HaveCodesThatAreListed) {
  facts_.knows_pods = false;
  facts_.devices_trouble = facts_.token_trouble = facts_.topology.other_writer = "x";
  facts_.missing_rights = {"x"};
  for (const char* word : kSetupWarnings) facts_.topology.setup_warnings[word] = "x";
  const std::set<std::string> listed(illness::kAll.begin(), illness::kAll.end());
  for (const Illness& one : own_illnesses(facts_)) {
    EXPECT_TRUE(listed.contains(one.code)) << one.code;
    EXPECT_EQ(one.subject, "node n1");
  }
}

}  // namespace
}  // namespace topolet::agent
