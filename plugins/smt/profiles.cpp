#include "plugins/smt/profiles.hpp"

#include <algorithm>
#include <charconv>

#include "plugins/smt/kinds.hpp"

namespace topolet::smt {
namespace {

constexpr std::string_view kHeavyText = "heavy ";
constexpr std::string_view kLightText = "light";

/// "0.85".
std::string share_text(std::int32_t permille) {
  const std::int32_t hundredths = (permille + 5) / 10;
  return std::to_string(hundredths / 100) + '.' + (hundredths % 100 < 10 ? "0" : "") + std::to_string(hundredths % 100);
}

std::string hours_text(Hours hours) {
  sdk::Set set;
  for (std::uint32_t hour = 0; hour < 24; ++hour) {
    if ((hours >> hour & 1U) != 0) set.insert(hour);
  }
  return set.to_string();
}

/// Unknown for a text that tag_text() does not write.
LoadProfile profile_of_tag(std::string_view text) {
  LoadProfile profile;
  if (text == kLightText) {
    profile.profile = Profile::kLight;
  } else if (text.substr(0, kHeavyText.size()) == kHeavyText) {
    const std::string_view digits = text.substr(kHeavyText.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), profile.busy_hours, 16);
    if (error == std::errc() && end == digits.data() + digits.size()) profile.profile = Profile::kHeavy;
  }
  if (profile.profile != Profile::kUnknown) {
    profile.reason = "it counts as ";
    profile.reason += profile.profile == Profile::kHeavy ? "heavy" : "light";
    profile.reason += " since it was created";
  }
  return profile;
}

LoadProfile unmeasured(const std::string& kind) {
  return {Profile::kHeavy, kAllHours, "it counts as heavy: nothing is known of what " + kind + " uses", true};
}

}  // namespace

Profile annotated_profile(topolet_kvs settings) {
  const std::string_view profile = sdk::value_of(settings, kCpuProfileAnnotation);
  if (profile == "heavy") return Profile::kHeavy;
  return profile == "light" ? Profile::kLight : Profile::kUnknown;
}

bool requests_cpus(const topolet_request& request) {
  if (request.exclusive != 0) return request.exclusive_cpus > 0;
  const topolet_demand* const demand = request.workload->demand;
  return demand != nullptr && demand->cpu_request_milli > 0;
}

LoadProfile profile_of(const DayOfUse& day, const std::string& kind) {
  const auto* const peak = std::max_element(day.permille.begin(), day.permille.end());
  LoadProfile profile{Profile::kLight, 0, "", true};
  for (std::size_t hour = 0; hour < day.permille.size(); ++hour) {
    const std::int32_t used = day.permille[hour];
    if (used < 0 || used >= kBusyPermille) profile.busy_hours |= Hours{1} << hour;
  }
  const std::string most = "up to " + share_text(std::max(0, *peak)) + " of its CPUs";
  if (*peak < kBusyPermille) {
    profile.reason = "it counts as light: " + kind + " uses " + most;
    return profile;
  }
  profile.profile = Profile::kHeavy;
  profile.reason = "it counts as heavy: " + kind + " uses " + most;
  if (profile.busy_hours != kAllHours)
    profile.reason += " (busy, or not measured, in hours " + hours_text(profile.busy_hours) + " of the day in UTC)";
  return profile;
}

std::string tag_text(const LoadProfile& profile) {
  if (profile.profile != Profile::kHeavy) return std::string(kLightText);
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), profile.busy_hours, 16).ptr;
  return std::string(kHeavyText) + std::string(digits.data(), end);
}

LoadProfile Profiles::of_newcomer() const {
  const topolet_workload& workload = *request_.workload;
  if (const Profile said = annotated_profile(workload.settings); said != Profile::kUnknown)
    return {said, kAllHours, "", false};
  if (options_.pair != Pair::kMeasured) return {};
  if (const auto tag = sdk::find_value(workload.tags, kFullProfileTag)) return profile_of_tag(*tag);
  if (request_.occasion != TOPOLET_OCCASION_CREATE || !requests_cpus(request_)) return {};
  const std::string kind = kind_of(workload);
  const std::optional<DayOfUse> day = history_.day_of(kind);
  return day ? profile_of(*day, kind) : unmeasured(kind);
}

LoadProfile Profiles::of_entry(std::size_t position) const {
  const topolet_ledger_entry& entry = sdk::entries(*request_.ledger)[position];
  if (const Profile said = annotated_profile(entry.settings); said != Profile::kUnknown)
    return {said, kAllHours, "", false};
  if (options_.pair != Pair::kMeasured) return {};
  if (const auto tag = sdk::find_value(entry.tags, kFullProfileTag)) return profile_of_tag(*tag);
  const bool wants_cpus =
      entry.mode == TOPOLET_MODE_EXCLUSIVE || (entry.demand != nullptr && entry.demand->cpu_request_milli > 0);
  if (!wants_cpus) return {};
  const std::optional<UseOfCpus> use = recent_use(request_.load, *request_.ledger, position);
  const bool is_light = use && use->permille() < kBusyPermille;
  return {is_light ? Profile::kLight : Profile::kHeavy, kAllHours, "", false};
}

}  // namespace topolet::smt
