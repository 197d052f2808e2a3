// The state that plugins keep, as the record says they found it.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "core/base/mutex.hpp"
#include "core/replay/state_access.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::replay {

/// Answers each call as it was answered when it was recorded; one that was not made then, by what is known. Safe from
/// any thread.
class ReplayedState final : public store::PluginStateStore {
 public:
  /// A line of the record, about what is replayed next. Throws InvalidLine, or what the JSON library throws.
  void read_line(const Json& line) TOPOLET_EXCLUDES(mutex_);
  /// Hears that the lines so far have been replayed.
  void forget_answers() TOPOLET_EXCLUDES(mutex_);
  void clear() TOPOLET_EXCLUDES(mutex_);

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override;
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override;
  Result<std::size_t> count(const std::string& plugin) override;
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override;
  Status remove(const std::string& plugin, const std::string& key) override;

 private:
  using Call = std::tuple<std::string, StateAccess::Kind, std::string>;

  Result<std::optional<std::string>> answer(StateAccess access) TOPOLET_EXCLUDES(mutex_);
  Status write(StateAccess access) TOPOLET_EXCLUDES(mutex_);
  std::optional<StateAccess> recorded(const StateAccess& access) TOPOLET_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::string, KnownState> recorded_ TOPOLET_GUARDED_BY(mutex_);  ///< by plugin, by the lines alone
  std::map<std::string, KnownState> known_ TOPOLET_GUARDED_BY(mutex_);     ///< with what is written in the replay
  std::map<Call, std::deque<StateAccess>> answers_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::replay
