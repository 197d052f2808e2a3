// Which containers have ended, of the answers that pass on their way to a client.
#pragma once

#include <vector>

#include "core/cri/call.hpp"
#include "core/operations/operation.hpp"

namespace topolet::cri {

/// The containers that an answer to one of the observed methods (intercepted_methods.hpp) reports as ended. Looks at
/// the few fields that say so and skips the rest: a list is as long as the node is full, is asked for every second, and
/// mostly has no such container. What cannot be read ends the list: to complain is for the client.
std::vector<operations::ExitSeen> read_ended_containers(const ObservedMessage& answer);

}  // namespace topolet::cri
