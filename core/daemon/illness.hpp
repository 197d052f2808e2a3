// Finds everything that is wrong on this node; the only place that does. `topolet status`, the watch socket and,
// through it, topolet-agent's page, metrics and readiness show its results.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/illness.hpp"
#include "core/daemon/recent_denials.hpp"
#include "core/engine/engine.hpp"
#include "core/plugin/call/policy_thread.hpp"

namespace topolet::daemon {

/// An enabled plugin.
struct PluginFacts {
  std::string name;
  std::string needed_by;  ///< the option because of which containers are denied without its vote; empty: none are
  bool is_loaded = true;
  std::string stuck;  ///< that a call of the control thread has not returned, and what to do; empty otherwise
  plugin::PluginStatistics statistics = {};
};

/// The daemon's state at one moment.
struct HealthFacts {
  std::string runtime;  ///< the path of its socket
  bool runtime_connected = false;
  bool runtime_answers = true;  ///< as RuntimeProbe has it
  std::string state_dir;
  std::string store_damage = {};                  ///< empty if the state database is sound
  bool reload_failed = false;                     ///< the last one; what was in force before goes on
  std::string watch_error = {};                   ///< why nobody can watch; empty if somebody can, or nobody is to
  std::vector<std::string> restart_needed = {};   ///< changed keys that only a restart applies
  const engine::EngineSummary* engine = nullptr;  ///< null: it did not answer in time
  std::vector<PluginFacts> plugins = {};
  std::vector<RecentDenial> denials = {};
  std::chrono::milliseconds now{};  ///< wall clock
};

/// Pure. The worst first, and of each code only so many that the answer stays small: the last one then stands for the
/// rest.
std::vector<Illness> find_illnesses(const HealthFacts& facts);

/// As the messages of the sockets have it; both have the same fields.
template <class List>
void tell_illnesses(const std::vector<Illness>& illnesses, List& list) {
  for (const Illness& illness : illnesses) {
    auto& told = *list.add_illnesses();
    told.set_code(illness.code);
    told.set_severity(std::string(to_string(illness.severity)));
    told.set_subject(illness.subject);
    told.set_sentence(illness.sentence);
    told.set_since_ms(illness.since.count());
    told.set_count(illness.count);
  }
}

}  // namespace topolet::daemon
