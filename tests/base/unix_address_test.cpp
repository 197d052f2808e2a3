#include "core/base/unix_address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet {
namespace {

using ::testing::HasSubstr;

TEST(UnixAddress, HasThePath) {
  const auto address = unix_address("/run/a.sock");
  ASSERT_TRUE(address.has_value()) << address.error().message;
  EXPECT_EQ(address->sun_family, AF_UNIX);
  EXPECT_STREQ(address->sun_path, "/run/a.sock");
}

TEST(UnixAddress, TakesTheLongestPathThatTheKernelTakes) {
  EXPECT_TRUE(unix_address(std::string(kMaxSocketPath, 'a')).has_value());
  for (const std::string& path : {std::string(), std::string(kMaxSocketPath + 1, 'a')}) {
    const auto address = unix_address(path);
    ASSERT_FALSE(address.has_value());
    EXPECT_EQ(address.error().code, Code::kInvalidArgument);
    EXPECT_THAT(address.error().message, HasSubstr("1 to 107 characters"));
  }
}

TEST(UnixAddress, CutsTheScheme) {
  EXPECT_EQ(without_unix_scheme("unix:///run/a.sock"), "/run/a.sock");
  EXPECT_EQ(without_unix_scheme("/run/a.sock"), "/run/a.sock");
  EXPECT_EQ(without_unix_scheme("tcp://a"), "tcp://a");
}

}  // namespace
}  // namespace topolet
