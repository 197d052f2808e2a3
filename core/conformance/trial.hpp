// Asks a plugin everything about one request, through the host's own code, and judges what it says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/conformance/child.hpp"
#include "core/conformance/outcome.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/plugin_policy.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {

/// One thing that a plugin must not do.
struct Breach {
  enum class Kind : std::uint8_t {
    kMisbehaved,  ///< threw, or returned a status that is not for it
    kNonsense,    ///< said something that cannot be, such as a score out of range
    kWidens,      ///< named CPUs or nodes that it was not offered
    kLeavesNone,  ///< narrowed to nothing
  };
  Kind kind = Kind::kMisbehaved;
  Mismatch mismatch;
};

struct Trial {
  std::string answers;  ///< all that it said, as one text, to be compared
  std::vector<Breach> breaches;
  std::uint32_t calls = 0;
  std::uint32_t given_up = 0;  ///< calls it answered with TOPOLET_FAILED
};

/// One request with the view of its topology. Immutable.
struct Question {
  std::string name;  ///< for people: "request 3 on 24-nodes"
  std::shared_ptr<const TopologyView> topology;
  PolicyRequest request;
};

/// score, pick and adjust. Up to six candidates that fit are picked on.
Trial ask(PluginPolicy& plugin, const Question& question, const Progress& progress);

/// A life of the container, and a tick. These may change the plugin's state.
Trial tell(PluginPolicy& plugin, const Question& question, const Progress& progress);

}  // namespace topolet
