#include "core/engine/handlers/set_capacity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/engine/state/reported_capacity.hpp"

namespace topolet::engine {
namespace {

constexpr std::size_t kLongestSource = 64;

bool is_source(const std::string& text) {
  return !text.empty() && text.size() <= kLongestSource && text == printable(text, kLongestSource);
}

/// The node's nominal capacity; an error if the request cannot be granted.
Result<std::int64_t> check_capacity(const CapacityRequest& request, const topology::Topology& topology,
                                    std::chrono::milliseconds now) {
  const topology::Node* node = topology.node(request.node);
  if (node == nullptr) {
    return Error{Code::kNotFound, fmt::format("there is no NUMA node {}; `topolet nodes` lists them", request.node)};
  }
  if (!is_source(request.source)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the source of a capacity must be 1 to {} printable ASCII characters; it says who told it",
                             kLongestSource)};
  }
  if (!request.milli) return nominal_milli(&topology, request.node);
  if (node->memory_only) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("NUMA node {} has no CPUs, and so no capacity of them; `topolet nodes` lists those that do",
                    request.node)};
  }
  if (*request.milli < 0) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the capacity of NUMA node {} cannot be {} milli-CPUs; it is 0 to {}", request.node,
                             *request.milli, nominal_milli(&topology, request.node))};
  }
  if (request.until <= now) {
    return Error{
        Code::kInvalidArgument,
        fmt::format("the capacity of NUMA node {} would have ended already; it must end in the future", request.node)};
  }
  if (request.until > now + kLongestReport) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the capacity of NUMA node {} would be told for more than {} days; tell it for less, and "
                             "again while it lasts",
                             request.node, kLongestReport.count() / 24)};
  }
  return nominal_milli(&topology, request.node);
}

}  // namespace

void handle_set_capacity(const HandlerDeps& deps, const CapacityRequest& request, std::chrono::milliseconds now,
                         const OnCapacity& then) {
  const Result<std::int64_t> nominal = check_capacity(request, *deps.placer.topology(), now);
  if (!nominal) return then(nominal.error());
  const std::int64_t milli = std::min(request.milli.value_or(*nominal), *nominal);
  const CapacityAnswer answer{milli, *nominal, deps.ledger().reported_capacities().count(request.node) != 0};
  const auto when_done = [then, answer] { then(answer); };
  if (!request.milli) return deps.committer.commit(event::CapacityCleared{request.node, request.source}, when_done);
  deps.committer.commit(event::CapacityReported{request.node, milli, request.until, request.source}, when_done);
}

void handle_measured_capacity(const HandlerDeps& deps, std::uint32_t node, std::optional<std::int64_t> milli,
                              std::chrono::milliseconds now) {
  const auto& capacities = deps.ledger().reported_capacities();
  const auto known = capacities.find(node);
  if (known != capacities.end() && !is_measured(known->second)) return;
  const std::int64_t nominal = nominal_milli(deps.placer.topology().get(), node);
  if (milli && nominal > 0) {
    deps.committer.commit(
        event::CapacityReported{node, std::min(*milli, nominal), now + kMeasuredStays, kMeasuredSource});
  } else if (known != capacities.end()) {
    deps.committer.commit(event::CapacityCleared{node, kMeasuredSource});
  }
}

}  // namespace topolet::engine
