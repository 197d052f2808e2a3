// What plugins do in a simulation beside their votes: fields that they add, events that they are told, state that they
// write, and lines that they log.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/workload.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::simulate {

/// The fields that the last decision about a container adds.
struct AddedByPlugins {
  placement::ContainerKey key;
  placement::AddedFields fields;
};

struct ToldEvent {
  std::string event;  ///< "placed", "moved", …
  std::string pod;    ///< uid
  std::string container;
  std::vector<std::string> plugins;  ///< those that were told
};

struct StateWrite {
  std::string plugin;
  std::string key;
  std::optional<std::size_t> bytes;  ///< of the value; nothing: the key was removed
  std::optional<std::string> text;   ///< the value, if it is text of at most kMostShownBytes
  static constexpr std::size_t kMostShownBytes = 64;
};

struct LoggedLine {
  std::string level;
  std::string line;  ///< begins with the plugin's id
};

struct PluginActivity {
  std::vector<AddedByPlugins> added;  ///< those with a field
  std::vector<ToldEvent> events;      ///< those that some plugin was told
  std::vector<StateWrite> state;
  std::vector<LoggedLine> log;
};

/// Notes it. Safe from any thread: plugins write and log on theirs.
class ActivityRecorder {
 public:
  ActivityRecorder();
  ~ActivityRecorder();
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  /// The log to give to plugins.
  std::shared_ptr<Log> log() const { return log_; }
  /// Passes everything on, and notes what is written.
  std::shared_ptr<store::PluginStateStore> watched(std::shared_ptr<store::PluginStateStore> state) const;
  /// Takes the place of an earlier decision about the container.
  void add_decision(const placement::ContainerKey& key, const placement::AddedFields& fields);
  void add_event(const plugin::ContainerEvent& event, const std::vector<plugin::PluginVote>& votes);

  /// Returns what was noted since the last time.
  PluginActivity take();

 private:
  struct Notes;
  const std::shared_ptr<Notes> notes_;
  const std::shared_ptr<Log> log_;
};

}  // namespace topolet::simulate
