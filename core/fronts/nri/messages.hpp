// What the events of NRI say, as the engine's values, and what it answers to them. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/fronts/nri/session.hpp"
#include "core/operations/container.hpp"
#include "core/operations/operation.hpp"

namespace topolet::nri {

/// An event about a pod, and one of its containers unless the id of that is empty.
struct LifecycleEvent {
  operations::Sandbox sandbox;
  std::string container_id;
  std::int64_t pid = 0;                   ///< of the container; 0: it has none
  std::optional<std::int32_t> exit_code;  ///< of one that has ended: one that is being stopped is told, too
};

/// Reads the events that are told by a method each. Errors are INVALID_ARGUMENT and say which message it is about.
Result<LifecycleEvent> read_event(const std::string& method, const std::string& payload);

struct StateChange {
  Event event = Event::kRunPodSandbox;
  LifecycleEvent about;
};
/// Reads those that older runtimes tell by StateChange.
Result<StateChange> read_state_change(const std::string& payload);

struct CreateRequest {
  std::string container_id;
  placement::Workload workload;  ///< the attempt is 0: the runtime does not tell it
};
Result<CreateRequest> read_create(const std::string& payload, const operations::DemandRules& rules);

/// The answer to a create. NRI has no word for an RDT class in the annotations, but one of its own.
std::string make_create_answer(const operations::Admission& admission);

/// New resources of a container, as they were asked for.
struct UpdateRequest {
  operations::ResourceUpdate update;
  std::string resources;  ///< the message, which the answer repeats
};
Result<UpdateRequest> read_update(const std::string& payload);

/// The answer to an update: all that was asked for, with `set` in the place of its CPUs, memory nodes and quota. The
/// runtime puts it in the place of the whole request.
std::string make_update_answer(const UpdateRequest& asked, const operations::ContainerCpuset& set);

}  // namespace topolet::nri
