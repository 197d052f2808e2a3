// The recent denials, for reports of the node's health.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/engine/state/observer.hpp"
#include "core/engine/state/transition.hpp"
#include "store/store.hpp"

namespace topolet::daemon {

/// For so long a denial is told.
inline constexpr std::chrono::minutes kDenialTold{10};

struct RecentDenial {
  std::string container;               ///< as display_name() says it
  std::string reason_code = {};        ///< may be empty
  std::string reason = {};             ///< of the newest
  std::chrono::milliseconds first{};   ///< wall clock: of the first with this reason, and of those since
  std::chrono::milliseconds newest{};  ///< wall clock
  std::uint64_t times = 1;
  bool is_over = false;  ///< it was placed since, or its pod is gone
};

/// Hears of denials from the engine, whether the database takes them or not. Earlier ones, from before the start, are
/// passed to it once: those that the database kept.
class RecentDenials final : public engine::Observer {
 public:
  void begin_with(const std::vector<store::DenialRow>& rows) TOPOLET_EXCLUDES(mutex_);
  void on_durable(const engine::Transition& transition) override TOPOLET_EXCLUDES(mutex_);

  /// Any thread. Those of the last kDenialTold, the newest first.
  std::vector<RecentDenial> until(std::chrono::milliseconds now) const TOPOLET_EXCLUDES(mutex_);

 private:
  struct Entry {
    RecentDenial denial;
    std::int64_t decision = 0;
    std::string sandbox_id;
  };
  /// pod uid and container: its next attempt is the same container.
  using Key = std::pair<std::string, std::string>;

  void note(const engine::RecordedEvent& event, std::chrono::milliseconds at) TOPOLET_REQUIRES(mutex_);
  void note_repeat(std::int64_t decision, std::chrono::milliseconds at) TOPOLET_REQUIRES(mutex_);
  void note_end(const std::string& sandbox_id) TOPOLET_REQUIRES(mutex_);
  void put(const Key& key, Entry entry) TOPOLET_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Key, Entry> denied_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::daemon
