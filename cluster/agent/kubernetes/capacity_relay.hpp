// Hands down to topoletd what others say of the node's capacity in its NodeResourceTopology.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cluster/agent/async_calls.hpp"
#include "cluster/api/http_loop.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"
#include "core/control/control.grpc.pb.h"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// The attributes `offline-capacity-milli` and `offline-capacity-until` of a zone.
struct OfferedCapacity {
  std::int64_t milli = 0;             ///< 0 or more
  std::chrono::milliseconds until{};  ///< wall clock

  friend bool operator==(const OfferedCapacity&, const OfferedCapacity&) = default;
};

/// By OS index of the node.
struct OfferedCapacities {
  std::map<std::uint32_t, OfferedCapacity> by_node;
  std::string unusable;  ///< what is wrong with one of the others; empty if nothing is
};

/// Reads a NodeResourceTopology. An amount without an end is ignored; one below 0 counts as 0.
OfferedCapacities read_offered_capacities(const nlohmann::json& object);

/// Returns the capacity to set in topoletd for a node; nothing if it has that value already. Values from others, such
/// as the operator, stay until they expire. The request's `source` is this program.
std::optional<control::v1::SetCapacityRequest> capacity_request(const watch::v1::Node& node,
                                                                const watch::v1::Capacity* told,
                                                                const OfferedCapacity* offered,
                                                                std::chrono::milliseconds now);

/// One request at a time, and none within a second after another. On the loop's thread, but for its end.
class CapacityRelay {
 public:
  using NodeState = std::function<std::optional<watch::v1::Snapshot>()>;
  /// For metrics.
  struct Counts {
    std::uint64_t handed_down = 0;
    std::uint64_t failed = 0;
  };

  /// `socket`: the path of topoletd's control socket. `node_state`: nothing while it is not known. `loop` must outlive
  /// it.
  CapacityRelay(api::HttpLoop& loop, const std::string& socket, NodeState node_state, Log& log);
  CapacityRelay(const CapacityRelay&) = delete;
  CapacityRelay& operator=(const CapacityRelay&) = delete;

  /// The object as the API server has it; null: there is none.
  void take_object(const nlohmann::json& object);
  /// Checks soon whether topoletd has other values now.
  void node_changed() { look_soon(); }
  const Counts& counts() const { return counts_; }

 private:
  using Time = api::HttpLoop::Time;

  void look_soon();
  void look_at(Time due);
  void look();
  void hand_down(const control::v1::SetCapacityRequest& request);
  void take_answer(const Result<control::v1::SetCapacityResponse>& answer);

  api::HttpLoop& loop_;
  const NodeState node_state_;
  api::TroubleLog trouble_;
  api::TroubleLog unusable_;
  const std::unique_ptr<control::v1::Control::Stub> stub_;
  Counts counts_;
  OfferedCapacities offered_;
  bool is_object_known_ = false;
  bool is_busy_ = false;
  Time not_before_{};  ///< the next request
  std::chrono::milliseconds retry_{0};
  std::optional<std::uint64_t> timer_;
  Time due_{};        ///< of timer_
  AsyncCalls calls_;  // the last member: it waits for calls that use the others
};

}  // namespace topolet::agent
