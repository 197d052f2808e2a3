#include "core/machine/uevent_socket.hpp"

#include <gtest/gtest.h>

#include <string>

namespace topolet::machine {
namespace {

using namespace std::string_literals;

TEST(CpuOfUevent, IsThatOfACpuThatGoesOrComes) {
  EXPECT_EQ(cpu_of_uevent("offline@/devices/system/cpu/cpu3\0ACTION=offline\0SUBSYSTEM=cpu\0"s), 3U);
  EXPECT_EQ(cpu_of_uevent("online@/devices/system/cpu/cpu120\0ACTION=online\0"s), 120U);
  EXPECT_EQ(cpu_of_uevent("remove@/devices/system/cpu/cpu7"s), 7U);
  EXPECT_EQ(cpu_of_uevent("add@/devices/system/cpu/cpu7\0"s), 7U);
}

TEST(CpuOfUevent, IsNoneOfAnythingElse) {
  for (const std::string& message :
       {""s, "\0"s, "offline"s, "offline@"s, "offline@/devices/system/cpu/cpu"s,
        "offline@/devices/system/cpu/cpu3/cache"s, "offline@/devices/system/cpu/cpu-1"s,
        "offline@/devices/system/cpu/cpu65536"s, "offline@/devices/system/cpu/cpu99999999999"s,
        "offline@/devices/system/memory/memory3"s, "change@/devices/system/cpu/cpu3\0"s,
        "libudev\0offline@/devices/system/cpu/cpu3"s}) {
    EXPECT_EQ(cpu_of_uevent(message), std::nullopt) << message;
  }
}

TEST(UeventSocket, DoesNotWaitForMessages) {
  Result<UeventSocket> socket = UeventSocket::open();
  if (!socket) GTEST_SKIP() << socket.error().message;
  const UeventSocket::Heard heard = socket->read();
  EXPECT_TRUE(heard.cpus.empty());
}

}  // namespace
}  // namespace topolet::machine
