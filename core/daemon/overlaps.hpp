// Reports of containers that run on CPUs which another one has exclusively, and of those that are overruled.
#pragma once

#include <cstdint>
#include <vector>

#include "core/control/control.pb.h"
#include "core/engine/converge/overlap.hpp"
#include "core/engine/engine.hpp"

namespace topolet::daemon {

/// Counts the containers, not the CPUs or the owners: one that runs on CPUs of two others counts once.
std::uint32_t count_overlapping(const std::vector<engine::Overlap>& overlaps);

/// Fills in what `topolet status` shows of containers whose CPUs something else sets; as tell_overlaps().
void tell_overruled(const std::vector<engine::OverruledContainer>& overruled, control::v1::StatusResponse& response);
/// The same of those that do not leave CPUs.
void tell_stuck(const std::vector<engine::StuckContainer>& stuck, control::v1::StatusResponse& response);

/// Fills in what `topolet status` shows. The longest ones come first, and only so many that the answer stays small.
void tell_overlaps(const std::vector<engine::Overlap>& overlaps, control::v1::StatusResponse& response);

}  // namespace topolet::daemon
