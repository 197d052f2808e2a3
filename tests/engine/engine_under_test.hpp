// The one place of these tests that knows how the engine is put together and what its ledger looks like.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/log.hpp"
#include "core/cri/call.hpp"
#include "core/engine/converge/kernel.hpp"
#include "core/topology/topology.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet {
class Store;
}  // namespace topolet

namespace topolet::engine {
class Engine;
}  // namespace topolet::engine

namespace topolet::testing {

struct SeenAllocation {
  enum class Phase { kUnanswered, kBound, kFailed };  ///< kFailed: kept for the next attempt
  std::string container;                              ///< for people
  std::string container_id;                           ///< empty unless bound
  Phase phase = Phase::kUnanswered;
  bool exclusive = false;
  CpuSet cpus;
  CpuSet withheld;
};

struct SeenLedger {
  CpuSet pool;
  std::vector<SeenAllocation> allocations;
};

/// One life of the engine, with the real store in a directory that outlives it. Destroying it writes nothing and calls
/// nobody: this is how it is killed.
class EngineUnderTest {
 public:
  struct Deps {
    std::filesystem::path state_directory;
    std::shared_ptr<const Topology> machine;
    Runtime& runtime;
    VirtualTime& time;
    engine::Kernel kernel;
    bool pods_prefer_nodes = false;  ///< a policy keeps them where they would rather be; otherwise there is none
  };
  /// Throws if the engine cannot start.
  explicit EngineUnderTest(Deps deps);
  ~EngineUnderTest();
  EngineUnderTest(const EngineUnderTest&) = delete;
  EngineUnderTest& operator=(const EngineUnderTest&) = delete;

  /// It does nothing any more from here on.
  void stop();

  void on_call(std::shared_ptr<Call> call);
  void on_observed(Observation observation);
  void on_connected();
  void look(std::function<void(const SeenLedger&)> look);

 private:
  std::shared_ptr<Log> log_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace topolet::testing
