// The devices that the kubelet offers, and those that containers have.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/agent/async_calls.hpp"
#include "cluster/agent/kubernetes/podresources.grpc.pb.h"
#include "cluster/agent/kubernetes/zones.hpp"
#include "cluster/api/http_loop.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"

namespace topolet::agent {

/// Asks the kubelet's PodResources socket, which reports no changes by itself: each minute, soon after refresh(), and
/// every few seconds while it does not answer. Meanwhile the last answer stays valid. On the loop's thread, but for its
/// end.
class DeviceInventory {
 public:
  /// Devices of a pod, by container and then by resource.
  using Given = std::map<std::string, std::map<std::string, std::int64_t>>;
  /// The nodes that as many devices of a container are near to as can be; by container.
  /// Devices that are near to no node, or of which nobody tells, are not in it.
  using Near = std::map<std::string, std::set<std::uint32_t>>;
  struct State {
    DeviceCounts counts;
    std::map<std::pair<std::string, std::string>, Given> given = {};  ///< by the pod's namespace and name
    std::map<std::pair<std::string, std::string>, Near> near = {};    ///< the same

    friend bool operator==(const State&, const State&) = default;
  };

  /// `socket`: its path. `on_change` is called when what is known has changed, and once when the first answer came or
  /// failed to. `loop` must outlive it.
  DeviceInventory(api::HttpLoop& loop, const std::string& socket, std::function<void()> on_change, Log& log);
  DeviceInventory(const DeviceInventory&) = delete;
  DeviceInventory& operator=(const DeviceInventory&) = delete;

  void start() { ask(); }
  void refresh();
  /// There is another pod of this name: what is known of it was the former one's.
  void forget(const std::string& name_space, const std::string& name);
  /// The kubelet has answered, or is known not to: what state() says is all there is.
  bool is_settled() const { return is_settled_; }
  const State& state() const { return state_; }
  bool works() const { return works_; }
  /// Why the kubelet does not tell; empty: it does, or was not asked yet.
  const std::string& trouble() const { return trouble_.now(); }

 private:
  void ask();
  void ask_again(std::chrono::milliseconds delay);
  void take_allocatable(Result<v1::AllocatableResourcesResponse> answer);
  void take_list(const v1::AllocatableResourcesResponse& allocatable, Result<v1::ListPodResourcesResponse> answer);
  void fail(const Error& error);
  void settle(bool works, State state, std::chrono::milliseconds until_next);

  api::HttpLoop& loop_;
  const std::function<void()> on_change_;
  api::TroubleLog trouble_;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
  State state_;
  bool is_settled_ = false;
  bool works_ = false;
  bool is_asking_ = false;
  bool is_stale_ = false;  ///< something may have changed since it was asked
  std::optional<std::uint64_t> timer_;
  AsyncCalls calls_;  // the last member: it waits for calls that use the others
};

/// Devices by resource and node. One that is local to several nodes counts in each of them, and one without a node in
/// none.
DeviceInventory::State count_devices(const v1::AllocatableResourcesResponse& allocatable,
                                     const v1::ListPodResourcesResponse& list);

}  // namespace topolet::agent
