// Whether containers are heavy or light: as their annotation says, or as measured.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/smt/options.hpp"
#include "plugins/smt/use_history.hpp"

namespace topolet::smt {

/// How much load a container puts on its cores.
enum class Profile : std::uint8_t { kUnknown, kHeavy, kLight };

/// Hours of a day in UTC: bit 0 is the one from midnight to 1 o'clock.
using Hours = std::uint32_t;
constexpr Hours kAllHours = 0xffffff;

/// A container that uses so much of its CPUs in an hour is busy in it; one that is in any hour is heavy.
constexpr std::int32_t kBusyPermille = 500;

struct LoadProfile {
  Profile profile = Profile::kUnknown;
  Hours busy_hours = kAllHours;  ///< of a heavy one; hours that were never measured are among them
  std::string reason;            ///< why it counts so; empty if its annotation says so
  bool is_measured = false;      ///< it was decided now, by measurement or for want of it
};

/// What the annotation topolet.io/cpu-profile says.
Profile annotated_profile(topolet_kvs settings);
LoadProfile profile_of(const DayOfUse& day, const std::string& kind);
/// Returns true if the container that is placed has CPUs of its own or requests some.
bool requests_cpus(const topolet_request& request);

/// The tag that says as what a container counts for as long as it lives, without and with the plugin's id.
inline constexpr std::string_view kProfileTag = "profile";
inline constexpr std::string_view kFullProfileTag = "smt/profile";
std::string tag_text(const LoadProfile& profile);

/// The containers of one request. Borrows everything that it is made from.
class Profiles {
 public:
  Profiles(const topolet_request& request, const PolicyOptions& options, const UseHistory& history)
      : request_(request), options_(options), history_(history) {}

  /// By measurement only when it is created; later as it was decided then.
  LoadProfile of_newcomer() const;
  /// Of a container in the ledger, by its position. One that was there before the plugin decided by measurement counts
  /// by what it uses at this moment.
  LoadProfile of_entry(std::size_t position) const;

 private:
  const topolet_request& request_;
  const PolicyOptions& options_;
  const UseHistory& history_;
};

}  // namespace topolet::smt
