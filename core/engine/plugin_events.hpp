// What plugins hear of the transitions.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"
#include "core/plugin/happenings.hpp"

namespace topolet::engine {

/// Lives on the loop's thread; plugins are told later, so that nobody's call waits for what they do with it.
class PluginEvents final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    const Placer& placer;
    /// Both may be empty.
    std::function<bool()> somebody_hears;
    std::function<void(std::shared_ptr<const Happening>)> notify;
  };
  /// Subscribes itself.
  PluginEvents(Committer& committer, Deps deps);

  /// Tells of all that a ledger from the store holds already.
  void tell_known(const Ledger& ledger);

  void committed(const Transition& transition) override;

 private:
  void tell(Happening::Kind kind, const Allocation& about);

  const Deps deps_;
};

}  // namespace topolet::engine
