// Which CPUs of a node set a container with devices gets.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/gpu/judge.hpp"
#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

/// Of these CPUs so many or more.
struct Share {
  sdk::Set cpus;
  std::size_t count = 0;
};

/// Divides the CPUs of an exclusive container among nodes, what counts most first: some on a node of every device, by
/// the number of devices there; then as many as can be beside devices; then the nearest. Nothing where there is no
/// choice. If they come in whole cores: only CPUs of cores that are free as a whole, in multiples of a core's threads.
std::vector<Share> divide(const topolet_pick_request& picking, const Sought& sought, const Rules& rules);

/// The same for one without devices: as many away from GPUs as can be, the others beside the GPUs of as few nodes as
/// can be.
std::vector<Share> divide_keeping_free(const topolet_pick_request& picking, const Rules& rules);

/// Why the chosen CPUs are farther from the devices than free ones; empty if they are not.
std::string shortcoming(const topolet_pick_request& picking, const Sought& sought, const Rules& rules);

/// Whether the CPUs are chosen already, and the question is only what is to be said of them.
bool is_chosen(const topolet_pick_request& picking);

/// Whether the devices matter for this question: nothing is to be chosen among CPUs of one node.
bool has_choice(const topolet_pick_request& picking);

}  // namespace topolet::gpu
