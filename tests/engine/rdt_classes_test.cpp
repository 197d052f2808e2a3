#include "core/engine/planning/rdt_classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;

TEST(UsableRdtClasses, AreTheMachinesThatNoRuntimeHasRefused) {
  std::vector<std::string> on_machine = {"gold", "silver"};
  RdtClasses classes([&on_machine] { return on_machine; });
  EXPECT_THAT(classes.usable(), ElementsAre("gold", "silver"));
  EXPECT_TRUE(classes.note_refusal("gold", "failed to set RDT class: RDT support is not enabled"));
  EXPECT_FALSE(classes.note_refusal("gold", "RDT support is not enabled")) << "it is known";
  EXPECT_FALSE(classes.note_refusal("silver", "no space left on device")) << "that is about something else";
  EXPECT_TRUE(classes.note_refusal("bronze", "rdt class \"bronze\" does not exist"));
  EXPECT_THAT(classes.usable(), ElementsAre("silver"));
  on_machine = {"bronze", "gold"};
  EXPECT_THAT(classes.usable(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace topolet::engine
