// The runtime in memory in the test's own process, without a socket: it answers at once, or when the test says so, and
// writes down what it was asked. For tests of the engine's parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/requests.hpp"
#include "tests/support/kernel_tree.hpp"
#include "tests/support/memory_runtime.hpp"

namespace topolet::engine {

/// One thread. Containers that run are in the kernel tree, where they were last told to be.
class ScriptedRuntime final : public cri::Runtime {
 public:
  /// As a test describes one.
  struct Container {
    std::string sandbox_id = "sandbox-a";
    std::string name = "a";
    std::uint32_t attempt = 0;
    operations::ContainerState state = operations::ContainerState::kRunning;
    std::int64_t pid = 0;         ///< 0: not told
    CpuSet cpus = {};             ///< in its spec
    std::int64_t whole_cpus = 0;  ///< requested, of a Guaranteed container; 0: best effort
  };

  explicit ScriptedRuntime(testing::KernelTree& kernel) : kernel_(kernel) {}

  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override;

  /// There is such a container from now on, or it is as this says.
  void put(const std::string& id, const Container& container);
  void put(const operations::Sandbox& sandbox);
  testing::MemoryRuntime::Container& container(const std::string& id) { return memory_.container(id); }
  void remove(const std::string& id) { memory_.forget(id); }
  void tell_only_processes() { memory_.tell_only_processes(); }
  void exit(const std::string& id, std::int32_t exit_code);
  /// As the kernel does, a container that is told to run on none but such CPUs runs on all others.
  void take_offline(const CpuSet& cpus) { offline_ = cpus; }
  /// Makes the kernel leave the container where it is, whatever updates say, or not any more.
  void ignore_updates(const std::string& id, bool ignores = true) { ignores_updates_[id] = ignores; }

  /// The next calls of this method are answered so, and nothing is done.
  void fail(const std::string& method, std::optional<cri::RuntimeResponse> answer) {
    failures_[method] = std::move(answer);
  }
  /// Updates that name files of a cgroup are refused with these words from now on, or not any more where there are
  /// none.
  void refuse_files(std::string words = "cannot set unified resource memory.high") {
    files_refused_ = std::move(words);
  }
  /// The next call of this method is answered so, once, and nothing is done.
  void fail_once(const std::string& method, cri::RuntimeResponse answer) { failures_once_[method] = std::move(answer); }
  /// Nothing is answered before release(), which does what was asked for as if it were asked for then.
  void hold() { held_ = true; }
  void release();

  /// Returns the calls, such as "UpdateContainerResources c1 0-1", and forgets them.
  std::vector<std::string> take_calls() { return std::exchange(calls_, {}); }

 private:
  cri::RuntimeResponse answer(const std::string& method, std::string message);
  void move_process(const testing::MemoryRuntime::Container& container);

  testing::KernelTree& kernel_;
  testing::MemoryRuntime memory_{
      {.on_change = [this](auto /*change*/, const auto& container) { move_process(container); }}};
  std::map<std::string, std::optional<cri::RuntimeResponse>> failures_;
  std::map<std::string, bool> ignores_updates_;
  CpuSet offline_;
  std::string files_refused_;  ///< empty: they are not
  std::map<std::string, cri::RuntimeResponse> failures_once_;
  bool held_ = false;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::string> calls_;
};

}  // namespace topolet::engine
