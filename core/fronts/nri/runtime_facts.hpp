// What a runtime says of itself, and what follows: which version of NRI it has, and what can be set through it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/operations/operation.hpp"

namespace topolet::nri {

/// What a runtime says of itself.
struct RuntimeFacts {
  std::string name;                             ///< "containerd", "cri-o"
  std::string version;                          ///< such as "v2.4.2"
  std::string nri_version;                      ///< such as "v0.12.3"; empty: it does not say
  std::chrono::milliseconds request_timeout{};  ///< after so long it closes the connection; 0: it does not say

  friend bool operator==(const RuntimeFacts&, const RuntimeFacts&) = default;
};

using NriVersion = std::pair<int, int>;

/// Returns the version that the runtime tells, or else the lowest that a runtime of its version has: those before NRI
/// 0.12 do not tell. None if neither is known.
std::optional<NriVersion> nri_version_of(const RuntimeFacts& runtime);

/// Returns false if the runtime asks no plugin to validate what others adjust: NRI before 0.10. True if the version is
/// not known.
bool asks_validators(const RuntimeFacts& runtime);

/// Returns what can be set for a container. A field that the runtime is too old for is dropped without an error, so
/// that nothing can be where the version is not known. `memory_modes`: those that the kernel has, as of Settable.
placement::Settable settable_through(const RuntimeFacts& runtime, std::uint32_t memory_modes);

/// What can be set through the runtime that topolet registered with last. Any thread.
class SettableNow {
 public:
  explicit SettableNow(std::uint32_t memory_modes) : memory_modes_(memory_modes) {}

  void note(const RuntimeFacts& runtime) TOPOLET_EXCLUDES(mutex_);
  placement::Settable get() const TOPOLET_EXCLUDES(mutex_);

 private:
  const std::uint32_t memory_modes_;
  mutable Mutex mutex_;
  placement::Settable settable_ TOPOLET_GUARDED_BY(mutex_) = {.through = "NRI"};
};

}  // namespace topolet::nri
