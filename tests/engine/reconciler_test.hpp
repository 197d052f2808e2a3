// A reconciler among the parts that it works with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "core/engine/converge/reconciler.hpp"
#include "tests/engine/converge_test.hpp"

namespace topolet::engine {

class ReconcilerTest : public ConvergeTest {
 protected:
  Status reconcile() {
    std::optional<Status> reported;
    reconciler_->run([&reported](const Status& status) { reported = status; });
    loop_.advance(std::chrono::seconds(1));
    EXPECT_TRUE(reported);
    return reported.value_or(Status());
  }

  /// `c1` has the CPU of a create in doubt in its spec, and `c2` that of a container that failed.
  void find_on_cpus_of_others(operations::ContainerState state) {
    begin({exclusive("a", {0}, Phase::kInDoubt), exclusive("e", {1}, Phase::kCrashed)}, {pod_of("a"), pod_of("e")});
    for (const char* pod : {"a", "b", "e"}) runtime_.put(pod_of(pod).sandbox);
    runtime_.put("c1", {.sandbox_id = "sandbox-b", .name = "b", .state = state, .cpus = {0}, .whole_cpus = 1});
    runtime_.put("c2", {.sandbox_id = "sandbox-b", .name = "c", .state = state, .cpus = {1}, .whole_cpus = 1});
    EXPECT_TRUE(reconcile().has_value());
  }
};

}  // namespace topolet::engine
