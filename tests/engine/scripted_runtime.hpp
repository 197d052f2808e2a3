// A container runtime of a test: it answers at once, or when the test says so, and writes down what it was asked.
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

namespace topolet::engine {

/// One thread. Containers that run are in the kernel tree, where they were last told to be.
class ScriptedRuntime final : public cri::Runtime {
 public:
  struct Container {
    std::string sandbox_id = "sandbox-a";
    std::string name = "a";
    std::uint32_t attempt = 0;
    cri::ContainerState state = cri::ContainerState::kRunning;
    std::int32_t exit_code = 0;
    std::int64_t pid = 0;          ///< 0: not told
    CpuSet cpus = {};              ///< in its spec
    std::int64_t whole_cpus = 0;   ///< requested, of a Guaranteed container; 0: best effort
    bool ignores_updates = false;  ///< the kernel leaves it where it is
  };

  explicit ScriptedRuntime(testing::KernelTree& kernel) : kernel_(kernel) {}

  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override;

  /// There is such a container from now on, or it is as this says.
  void put(const std::string& id, Container container);
  /// As the kernel does, a container that is told to run on none but such CPUs runs on all others.
  void take_offline(const CpuSet& cpus) { offline_ = cpus; }
  Container& container(const std::string& id) { return containers_.at(id); }
  void remove(const std::string& id) { containers_.erase(id); }
  void exit(const std::string& id, std::int32_t exit_code);
  void put(const cri::Sandbox& sandbox) { sandboxes_[sandbox.id] = sandbox; }

  /// The next calls of this method are answered so, and nothing is done.
  void fail(const std::string& method, std::optional<cri::RuntimeResponse> answer) {
    failures_[method] = std::move(answer);
  }
  /// Nothing is answered before release(), which does what was asked for as if it were asked for then.
  void hold() { held_ = true; }
  void release();

  /// What was asked, such as "UpdateContainerResources c1 0-1", and forgotten with that.
  std::vector<std::string> take_calls() { return std::exchange(calls_, {}); }

 private:
  cri::RuntimeResponse answer(const std::string& method, const std::string& request);
  cri::RuntimeResponse update(const std::string& request);
  cri::RuntimeResponse status(const std::string& request) const;
  cri::RuntimeResponse list_containers() const;
  cri::RuntimeResponse list_sandboxes() const;
  static std::string info_of(const Container& container);

  testing::KernelTree& kernel_;
  std::map<std::string, Container> containers_;
  std::map<std::string, cri::Sandbox> sandboxes_;
  std::map<std::string, std::optional<cri::RuntimeResponse>> failures_;
  CpuSet offline_;
  bool held_ = false;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::string> calls_;
};

}  // namespace topolet::engine
