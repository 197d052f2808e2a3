// Reports transitions to the plugins.
#pragma once

#include <functional>
#include <memory>
#include <optional>

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

  /// Tells of all that a ledger from the store holds already.
  void publish_known(const Ledger& ledger);

  void on_durable(const Transition& transition) override;

 private:
  void publish(plugin::ContainerEvent::Kind kind, const Allocation& allocation);

  const Deps deps_;
};

}  // namespace topolet::engine
