#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/base/log_fwd.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Knows whether the kubelet hands out CPUs itself (policy static of its CPU manager), as its creates show: under
/// static all of them have a cpuset. What was told last is in the audit, so that a restart does not tell it again. On
/// the loop's thread.
class KubeletStatic {
 public:
  /// `last_told`: the reason code of the newest event of this kind; empty if there was none.
  KubeletStatic(Committer& committer, std::string_view last_told, Log& log);

  /// Hears of each create, before it is decided.
  void note(const placement::Workload& workload);

 private:
  enum class Told : std::uint8_t { kNothing, kOn, kOff };

  void tell(Told what, const placement::Workload& workload);

  Committer& committer_;
  Log& log_;
  Told told_ = Told::kNothing;
};

}  // namespace topolet::engine
