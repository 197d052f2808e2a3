#include "core/placement/move_kind.hpp"

#include <array>
#include <utility>

#include "core/placement/reason_codes.hpp"

namespace topolet::placement {
namespace {

constexpr std::string_view kOther = "decision";

/// The kinds by event or reason code.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kKinds{{
    {reason_code::kHealed, "heal"},
    {reason_code::kRoom, "room"},
    {reason_code::kMadeRoom, "room"},
    {reason_code::kCrowded, "crowd"},
    {reason_code::kReturned, "return"},
    {"widened", "widened"},
    {"narrowed", "narrowed"},
}};

}  // namespace

std::string_view move_kind(std::string_view event, std::string_view reason_code) {
  for (const auto& [word, kind] : kKinds) {
    if (word == event || word == reason_code) return kind;
  }
  return kOther;
}

std::vector<std::string> move_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [word, kind] : kKinds) {
    if (kinds.empty() || kinds.back() != kind) kinds.emplace_back(kind);
  }
  kinds.emplace_back(kPoolMove);
  kinds.emplace_back(kOther);
  return kinds;
}

}  // namespace topolet::placement
