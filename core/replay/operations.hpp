// The operations of a day, as the ledger's transitions tell them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/engine/state/observer.hpp"
#include "core/engine/state/transition.hpp"
#include "core/replay/recorder.hpp"

namespace topolet::replay {

/// Records pods, creates, starts, updates and ends of containers, and reported capacities, in the words of
/// `topolet simulate`, and what became of each. Hears of transitions on the engine's loop, which outlives nothing of
/// this.
class OperationRecorder final : public engine::Observer {
 public:
  explicit OperationRecorder(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}

  void on_loaded(const engine::Ledger& ledger) override;
  void on_durable(const engine::Transition& transition) override;

 private:
  void add_pod(const engine::PodChange& change);
  void add_change(const engine::Change& change);
  void add_create(const placement::Workload& workload);
  void add_update(const placement::Workload& workload);
  void add_outcome(const engine::Change& change);
  void add_end(const engine::Change& change);
  void add_denial(const engine::RecordedEvent& recorded);

  const std::shared_ptr<Recorder> recorder_;
  std::map<std::string, std::string> pods_;  ///< uids of those that are known, by sandbox
};

}  // namespace topolet::replay
