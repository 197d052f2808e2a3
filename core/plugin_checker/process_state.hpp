// The state of this process that belongs to topoletd, and that a plugin leaves as it is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace topolet::plugin_checker {

/// What there is of one kind, by name: {"SIGTERM": "handled at 0x…"}, {"umask": "0022"}.
using Readings = std::map<std::string, std::string>;

/// One part of the state, which a case of the check is about.
struct StatePart {
  std::string case_name;  ///< "keeps-locale"
  std::string promise;    ///< for people: "the locale stays"
  std::function<Readings()> read;
  /// What is new may stay until destroy(): own files and threads are the plugin's.
  bool may_grow_while_it_lives = false;
};

/// All parts, in the order of their cases. They are read on the thread that calls the plugin.
const std::vector<StatePart>& state_parts();

/// What differs, for people: "TZ was 'UTC' and is 'CET'". Nothing if nothing does. `may_grow`: what is new is no
/// difference.
std::optional<std::string> find_change(const Readings& before, const Readings& after, bool may_grow);

}  // namespace topolet::plugin_checker
