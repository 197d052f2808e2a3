// Reports of topoletd about threads of its own that stand still.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/control/daemon_rig.hpp"
#include "tests/support/held_thread.hpp"

namespace topolet::testing {
namespace {

/// A service manager that listens to nobody, and waits six seconds.
class Watched {
 public:
  explicit Watched(const DaemonRig& rig) {
    ::setenv("NOTIFY_SOCKET", rig.file("notify").c_str(), 1);
    ::setenv("WATCHDOG_USEC", "6000000", 1);
  }
  ~Watched() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
};

TEST(Watchdog, NamesTheLoopThatStandsStill) {
  for (const auto& [thread, named] :
       {std::pair("topolet-loop", "the engine's loop"), std::pair("topolet-io", "the proxy's loop"),
        std::pair("topolet-accept", "the listener's loop")}) {
    DaemonRig rig;
    const Watched watched(rig);
    ASSERT_TRUE(rig.start()) << rig.log();
    const HeldThread held(thread_of(rig.process().pid(), thread));
    ASSERT_TRUE(held.is_held()) << thread;
    EXPECT_TRUE(rig.logs(std::string(named) + " has not turned for 2 s")) << rig.log();
  }
}

}  // namespace
}  // namespace topolet::testing
