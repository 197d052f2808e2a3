// Writes down all that decisions read, and the decisions, while a daemon works.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/placement/decide.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/replay/policy_answers.hpp"
#include "core/replay/record_writer.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::replay {

/// Nobody waits for the file: a thread of its own writes what is queued. What the file does not take, or what comes
/// faster than it is written, ends the record with a warning, and nothing else. Safe from any thread.
class Recorder {
 public:
  /// How much may wait in memory for the file, roughly.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{32} << 20U;

  struct Options {
    std::filesystem::path file;
    std::uint64_t max_bytes = 0;  ///< then it becomes FILE.1, in the place of the one before
    std::string version;          ///< topolet's
    Clock clock = {};
    std::size_t max_queued_bytes = kMaxQueuedBytes;
  };
  /// The record begins with the machine. An error of RecordFile::open(), or where no thread can be started.
  static Result<std::shared_ptr<Recorder>> open(Options options, std::shared_ptr<const topology::Topology> machine,
                                                std::shared_ptr<Log> log);
  /// As finish().
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// A configuration that may be in force soon: it is from the first decision on that says so, or from use_setup() on.
  void announce_setup(RecordedSetup setup);
  /// `names`: what its plugins, which are running by now, read.
  void use_setup(std::int64_t number, RecordedNames names);

  /// All that is held. On the thread that decides, before its first decision.
  void add_ledger(placement::LedgerSnapshot ledger);
  /// Those of other threads are left out: what might be decided is asked often, and nothing comes of it.
  void add_decision(std::shared_ptr<const placement::PolicyRequest> request, const placement::PlacementRules& rules,
                    NotedDecision made);
  /// When the plugins have been told.
  void add_event(std::shared_ptr<const plugin::ContainerEvent> container_event);
  void add_state(StateAccess access);
  /// As for RecordWriter; `make_line` is run later, on the recorder's thread.
  void add_operation(placement::ContainerKey key, std::function<Json()> make_line);

  using MakeView = std::function<std::shared_ptr<const plugin::TickSnapshot>()>;
  using Tick = std::function<std::vector<plugin::MoveRequest>(const MakeView& view)>;
  /// Runs the tick, and notes it if a plugin was due. `woken`: who wanted it, once it has run. Time stands meanwhile
  /// for who uses clock(): so that the same plugins are due when it is replayed.
  std::vector<plugin::MoveRequest> run_tick(const MakeView& view, const Tick& tick,
                                            const std::vector<std::string>* woken = nullptr);
  /// For who runs the ticks.
  Clock clock() const;

  /// Writes what is queued, but waits no longer than two seconds for that. Nothing is recorded any more. Idempotent.
  void finish();
  /// It has ended, as it could not be written.
  bool has_ended() const;

 private:
  struct Queue;
  explicit Recorder(std::shared_ptr<Queue> queue);

  const std::shared_ptr<Queue> queue_;
};

/// Says whether a decision that `recorder` is to be told of needs notes. It may be null: nothing is recorded.
inline Notes notes_for(const Recorder* recorder) {
  return recorder != nullptr && !recorder->has_ended() ? Notes::kTaken : Notes::kNone;
}

/// Passes everything on, and tells the recorder. `recorder` may be null.
std::shared_ptr<store::PluginStateStore> recorded_state(std::shared_ptr<store::PluginStateStore> state,
                                                        std::shared_ptr<Recorder> recorder);

}  // namespace topolet::replay
