#include "core/fronts/nri/runtime_facts.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>

namespace topolet::nri {
namespace {

using RuntimeVersion = std::array<int, 3>;

/// "v1.2.3" or "1.2.3"; the last number may be missing. None if it does not begin with two.
std::optional<RuntimeVersion> numbers_of(const std::string& version) {
  RuntimeVersion numbers{};
  const char* const digits = version.c_str() + (version.starts_with('v') ? 1 : 0);
  if (std::sscanf(digits, "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]) < 2) return std::nullopt;
  return numbers;
}

struct Release {
  RuntimeVersion runtime;
  NriVersion nri;
};
/// From which version on each has which NRI, the newest first.
constexpr std::array<Release, 4> kContainerd{
    {{{2, 3, 0}, {0, 12}}, {{2, 2, 7}, {0, 11}}, {{2, 2, 0}, {0, 10}}, {{0, 0, 0}, {0, 3}}}};
constexpr std::array<Release, 3> kCriO{{{{1, 35, 0}, {0, 11}}, {{1, 34, 0}, {0, 10}}, {{0, 0, 0}, {0, 3}}}};

template <class Releases>
std::optional<NriVersion> version_in(const Releases& releases, const RuntimeVersion& version) {
  for (const Release& release : releases) {
    if (version >= release.runtime) return release.nri;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NriVersion> nri_version_of(const RuntimeFacts& runtime) {
  if (const auto told = numbers_of(runtime.nri_version)) return NriVersion((*told)[0], (*told)[1]);
  const auto version = numbers_of(runtime.version);
  if (!version) return std::nullopt;
  if (runtime.name == "containerd") return version_in(kContainerd, *version);
  if (runtime.name == "cri-o") return version_in(kCriO, *version);
  return std::nullopt;
}

bool asks_validators(const RuntimeFacts& runtime) {
  const std::optional<NriVersion> version = nri_version_of(runtime);
  return !version || *version >= NriVersion(0, 10);
}

placement::Settable settable_through(const RuntimeFacts& runtime, std::uint32_t memory_modes) {
  const std::optional<NriVersion> version = nri_version_of(runtime);
  const std::string shown = version ? fmt::format("{}.{}", version->first, version->second) : "of unknown version";
  const auto has = [&version](int minor) { return version && *version >= NriVersion(0, minor); };
  return {.memory_modes = has(12) ? memory_modes : 0,
          .scheduler = has(11),
          .io_priority = has(10),
          .through = fmt::format("NRI {} of {}{}{}", shown, runtime.name, runtime.version.empty() ? "" : " ",
                                 runtime.version)};
}

void SettableNow::note(const RuntimeFacts& runtime) {
  placement::Settable settable = settable_through(runtime, memory_modes_);
  const MutexLock lock(mutex_);
  settable_ = std::move(settable);
}

placement::Settable SettableNow::get() const {
  const MutexLock lock(mutex_);
  return settable_;
}

}  // namespace topolet::nri
