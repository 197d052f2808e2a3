// Reports to the plugins what transitions do to containers and pods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"
#include "core/plugin/call/container_event.hpp"

namespace topolet::engine {

/// Lives on the loop's thread; plugins are told asynchronously, so that no call waits for them.
class PluginEvents final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    const Placer& placer;
    /// Both may be empty.
    std::function<bool()> any_plugin_handles_events;
    std::function<void(std::shared_ptr<const plugin::ContainerEvent>)> publish_event;
  };
  /// Subscribes itself.
  PluginEvents(Committer& committer, Deps deps);

  /// Tells of all that a ledger from the store holds already, as adopted.
  void publish_known(const Ledger& ledger);

  void on_durable(const Transition& transition) override;

 private:
  using Kind = plugin::ContainerEvent::Kind;

  void tell_of(const Change& change);
  void tell_of_placed(const Allocation& allocation, bool is_found);
  void tell_of_released(const Change& change);
  void tell_of_denied(const placement::Workload& workload, const std::string& reason);
  void tell_of_removed(const operations::Sandbox& sandbox);
  void publish(plugin::ContainerEvent container_event);

  const Deps deps_;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace topolet::engine
