#include "core/base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace topolet {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> seven = 7;
  EXPECT_TRUE(seven.has_value());
  EXPECT_EQ(*seven, 7);
  const Result<int> none = Error{Code::kNotFound, "no such thing"};
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(none.error(), (Error{Code::kNotFound, "no such thing"}));
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> held = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 3);
}

TEST(Status, IsFineUnlessItHoldsAnError) {
  EXPECT_TRUE(Status().has_value());
  EXPECT_EQ(Status(Error{Code::kInternal, "broken"}).error().message, "broken");
}

}  // namespace
}  // namespace topolet
