#include "core/engine/handlers/hidden_values.hpp"

#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

TEST(HiddenValues, StandByTheirVariablesInMessagesOfTheRuntime) {
  EXPECT_EQ(without_values("device error: GPU-hunter2: unknown device", {{"NVIDIA_VISIBLE_DEVICES", "GPU-hunter2"}}),
            "device error: (value of NVIDIA_VISIBLE_DEVICES): unknown device");
  EXPECT_EQ(without_values("hunter2 and hunter2", {{"A", "hunter2"}}), "(value of A) and (value of A)");
}

TEST(HiddenValues, AreHiddenItemByItem) {
  EXPECT_EQ(without_values("no device hunter2", {{"LIST", "0,hunter2;x"}}), "no device (value of LIST)");
}

TEST(HiddenValues, AreHiddenWholeBeforeTheirParts) {
  EXPECT_EQ(without_values("bad hunter2-hunter3", {{"A", "hunter2"}, {"B", "hunter2-hunter3"}}), "bad (value of B)");
}

TEST(HiddenValues, AreHiddenWhereTheRuntimeQuotesThem) {
  EXPECT_EQ(without_values(R"~(invalid "A=hunt\"er-two\\three\u003cfour\nfive\tsixes")~",
                           {{"A", "hunt\"er-two\\three<four\nfive\tsixes"}}),
            R"~(invalid "A=(value of A)\"(value of A)\\(value of A)\u003c(value of A)\n(value of A)\t(value of A)")~");
}

TEST(HiddenValues, LeaveOtherTextsAlone) {
  EXPECT_EQ(without_values("cannot create container 1 on", {{"A", "1"}, {"B", "on"}, {"C", ""}, {"D", "secret"}}),
            "cannot create container 1 on");
}

}  // namespace
}  // namespace topolet::engine
