// What plugins keep over restarts.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"

namespace topolet {

/// Values by plugin and key. Safe from any thread. Whoever calls has checked the bounds of <topolet/state.h>.
class StateStore {
 public:
  virtual ~StateStore() = default;
  /// Nothing if there is no such key.
  virtual Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) = 0;
  /// The first key after `after`, in the order of their bytes; nothing at the end.
  virtual Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) = 0;
  /// How many keys there are.
  virtual Result<std::size_t> count(const std::string& plugin) = 0;
  virtual Status set(const std::string& plugin, const std::string& key, const std::string& value) = 0;
  virtual Status remove(const std::string& plugin, const std::string& key) = 0;
};

/// Keeps them as long as it lives.
class StateInMemory final : public StateStore {
 public:
  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override;
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override;
  Result<std::size_t> count(const std::string& plugin) override;
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override;
  Status remove(const std::string& plugin, const std::string& key) override;

 private:
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> values_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet
