#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/requests.hpp"
#include "core/operations/runtime.hpp"

namespace topolet::cri {

inline constexpr std::chrono::milliseconds kUpdateTimeout = std::chrono::seconds(30);
inline constexpr std::chrono::milliseconds kListTimeout = std::chrono::seconds(30);
inline constexpr std::chrono::milliseconds kStatusTimeout = std::chrono::seconds(10);

/// Calls of our own to the runtime. Speaks runtime.v1, and v1alpha2 once the runtime has said that it knows only that.
/// Errors carry the runtime's code, and name the call and what it was about.
///
/// Any thread may call. Every `done` runs once, on the thread that Runtime::call() calls back on, and must not block.
/// Calls under way do not need the client any more, but they do need `runtime`, which must outlive them.
class RuntimeClient final : public operations::ContainerRuntime {
 public:
  RuntimeClient(Runtime& runtime, operations::DemandRules rules);
  ~RuntimeClient() override;
  RuntimeClient(const RuntimeClient&) = delete;
  RuntimeClient& operator=(const RuntimeClient&) = delete;

  void update(const std::string& container_id, const operations::ContainerCpuset& set,
              std::function<void(Status)> done) override;
  void list_containers(std::function<void(Result<std::vector<operations::ContainerInfo>>)> done) override;
  void list_sandboxes(std::function<void(Result<std::vector<operations::Sandbox>>)> done) override;
  void inspect(const std::string& container_id, std::function<void(Result<operations::ContainerDetail>)> done) override;

 private:
  struct Channel;
  std::shared_ptr<Channel> channel_;
  operations::DemandRules rules_;
};

}  // namespace topolet::cri
