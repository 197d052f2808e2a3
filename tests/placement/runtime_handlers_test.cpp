#include "core/placement/runtime_handlers.hpp"

#include <gtest/gtest.h>

namespace topolet::placement {
namespace {

RuntimeHandlers by_default() {
  return {.foreign = {"kata*", "*firecracker*", "*qemu*", "*clh*", "*-vm", "runhcs*", "urunc*"}};
}

TEST(RuntimeHandlers, ArePlacedButThoseOfVirtualMachines) {
  for (const char* handler : {"", "runc", "crun", "nvidia", "nvidia-cdi", "nvidia-legacy", "high-performance", "runsc",
                              "youki", "my-own", "wasmtime", "sandbox.one"}) {
    EXPECT_EQ(by_default().obstacle(handler), "") << handler;
  }
  for (const char* handler : {"kata", "kata-qemu", "kata-fc", "my-firecracker", "aws-firecracker-1", "qemu", "kata-clh",
                              "clh", "confidential-vm", "runhcs-wcow", "urunc"}) {
    EXPECT_NE(by_default().obstacle(handler), "") << handler;
  }
}

TEST(RuntimeHandlers, NameThePatternThatMatches) {
  EXPECT_EQ(by_default().obstacle("kata-qemu"), "placement.foreign-handlers = kata*");
}

TEST(RuntimeHandlers, MatchWholeNamesOnly) {
  const RuntimeHandlers handlers{.foreign = {"vm", "a*z", "x.y"}};
  for (const char* handler : {"vm", "az", "a-to-z", "x.y"}) EXPECT_NE(handlers.obstacle(handler), "") << handler;
  for (const char* handler : {"vm2", "my-vm", "a-to-y", "xay", ""})
    EXPECT_EQ(handlers.obstacle(handler), "") << handler;
}

TEST(RuntimeHandlers, HaveADefaultOneWithAName) {
  EXPECT_EQ(handler_name(""), "default");
  EXPECT_NE(RuntimeHandlers{.foreign = {"default"}}.obstacle(""), "");
  EXPECT_NE(RuntimeHandlers{.foreign = {"*"}}.obstacle(""), "");
  EXPECT_EQ(RuntimeHandlers{.foreign = {"default"}}.obstacle("runc"), "");
}

TEST(RuntimeHandlers, CanBeListedOneByOne) {
  const RuntimeHandlers handlers{.only = {{"default", "youki"}}, .foreign = {"youki"}};
  EXPECT_EQ(handlers.obstacle(""), "");
  EXPECT_EQ(handlers.obstacle("youki"), "");
  EXPECT_EQ(handlers.obstacle("runc"), "placement.handlers does not list it");
}

}  // namespace
}  // namespace topolet::placement
