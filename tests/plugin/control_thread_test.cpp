#include "core/plugin/guard/control_thread.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kLimit{200};

TEST(ControlThread, RunsOneCallAfterTheOtherAndDrainsWhatWasSent) {
  ControlThread control({.limit = std::chrono::minutes(1)});
  std::vector<int> order;
  const auto send = control.send();
  send("numa", "destroy", [&] { order.push_back(1); });
  EXPECT_TRUE(control.run("gpu", "create", [&] { order.push_back(2); }).has_value());
  send("numa", "destroy", [&] { order.push_back(3); });
  control.drain();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(ControlThread, LeavesACallThatDoesNotComeBackAndGoesOnWithTheNext) {
  const auto let_go = std::make_shared<std::promise<void>>();
  ControlThread control({.limit = kLimit});
  control.send()("numa", "destroy", [held = let_go->get_future().share()] { held.wait(); });
  bool ran = false;
  EXPECT_TRUE(control.run("gpu", "create", [&] { ran = true; }).has_value());
  EXPECT_TRUE(ran);
  EXPECT_EQ(control.stuck_call_of("numa"), "destroy");
  EXPECT_EQ(control.plugin_stuck_in("destroy"), "numa");
  EXPECT_FALSE(control.stuck_call_of("gpu").has_value());
  EXPECT_TRUE(control.has_abandoned_calls());

  let_go->set_value();
  while (control.has_abandoned_calls()) std::this_thread::yield();
  EXPECT_FALSE(control.stuck_call_of("numa").has_value());
}

TEST(ControlThread, FreesWhatALateCallOwnsWhenItIsBack) {
  auto owned = std::make_shared<std::promise<void>>();
  const std::weak_ptr<std::promise<void>> watched = owned;
  ControlThread control({.limit = kLimit});
  const Status late = control.run("numa", "create", [owned, held = owned->get_future().share()] { held.wait(); });
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(late.error().message, HasSubstr("plugin numa: create did not return within 200 ms"));
  owned->set_value();
  owned.reset();
  while (control.has_abandoned_calls()) std::this_thread::yield();
  EXPECT_TRUE(watched.expired());
}

TEST(ControlThread, SurvivesWorkThatThrows) {
  ControlThread control({.limit = std::chrono::minutes(1)});
  EXPECT_TRUE(control.run("numa", "create", [] { throw std::runtime_error("boom"); }).has_value());
  EXPECT_TRUE(control.run("numa", "create", [] {}).has_value());
}

}  // namespace
}  // namespace topolet::plugin
