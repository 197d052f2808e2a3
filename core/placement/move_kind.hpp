// Why containers are moved, in a word each. Public: `topolet moves`, the audit's function moves() and the metrics have
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace topolet::placement {

/// The kind of a move by no decision: the container follows the CPUs that all share.
inline constexpr std::string_view kPoolMove = "pool";

/// Returns the kind of a move by a decision, by the event and the reason code of that: "heal", "room", "crowd",
/// "return", "widened" or "narrowed"; "decision" for any other.
std::string_view move_kind(std::string_view event, std::string_view reason_code);

/// All of these, and kPoolMove.
std::vector<std::string> move_kinds();

}  // namespace topolet::placement
