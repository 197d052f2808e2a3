// The accesses of plugins to the state that they keep. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/replay/json_values.hpp"

namespace topolet::replay {

/// One call of a plugin's state, and how it ended.
struct StateAccess {
  enum class Kind : std::uint8_t {
    kAll,  ///< nobody's call: all that there is, before the first one
    kGet,
    kNext,  ///< the key after `key`
    kCount,
    kSet,
    kRemove,
  };
  Kind kind = Kind::kGet;
  std::string plugin;
  std::string key;
  std::optional<std::string> value;          ///< read or written; of kNext, a key; of kCount, the number
  std::map<std::string, std::string> all{};  ///< of kAll
  std::optional<Error> error{};              ///< it failed, and changed nothing
};

/// The values of one plugin by key, as far as they are known.
using KnownState = std::map<std::string, std::string>;

/// Returns the answer to the call as `known` has it, as long as nothing else is written.
std::optional<std::string> known_answer(const StateAccess& access, const KnownState& known);
/// Returns the state that is known after the call.
void apply_to_known(const StateAccess& access, KnownState& known);

/// Without its answer where `known` says the same.
Json to_line(const StateAccess& access, const KnownState& known);
/// Throws InvalidLine, or what the JSON library throws.
StateAccess read_state_line(const Json& line, const KnownState& known);

}  // namespace topolet::replay
