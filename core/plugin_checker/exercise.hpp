// Makes every call for one request into a plugin, through the host's own code, and judges its answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin_checker/outcome.hpp"
#include "core/plugin_checker/run_in_child.hpp"

namespace topolet::plugin_checker {

/// One thing that a plugin must not do.
struct Violation {
  enum class Kind : std::uint8_t {
    kThrew,
    kBadStatus,       ///< returned a status that it must not return
    kInvalidReply,    ///< said something that cannot be, such as a score out of range
    kOutsideOffer,    ///< named CPUs or nodes that it was not offered
    kEmptySelection,  ///< narrowed to nothing
  };
  Kind kind = Kind::kThrew;
  Mismatch mismatch;
};

struct ExerciseResult {
  std::string answers;  ///< all that it said, as one text, to be compared
  std::vector<Violation> violations;
  std::uint32_t calls = 0;
  std::uint32_t declined = 0;  ///< calls it answered with TOPOLET_FAILED
};

/// One request with the view of its topology. Immutable.
struct TestRequest {
  std::string name;  ///< for people: "request 3 on 24-nodes"
  std::shared_ptr<const plugin::AbiTopology> topology;
  placement::PolicyRequest request;
};

/// score, pick and adjust. Up to six candidates that fit are picked on.
ExerciseResult exercise_decision(plugin::PluginPolicy& plugin, const TestRequest& test_request,
                                 const Progress& progress);

/// A life of the container, and a tick. These may change the plugin's state.
ExerciseResult exercise_events(plugin::PluginPolicy& plugin, const TestRequest& test_request, const Progress& progress);

}  // namespace topolet::plugin_checker
