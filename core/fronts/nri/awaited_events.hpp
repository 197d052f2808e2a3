// What the front has admitted, until a later event tells what became of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/operations/operation.hpp"

namespace topolet::nri {

/// What may be done to a container and told later: one of each at a time.
enum class Awaited : std::uint8_t { kCreate, kStart, kUpdate };

/// Any thread.
class AwaitedEvents {
 public:
  /// An older one of the same kind is over with an unknown outcome. Returns the number of this one.
  std::uint64_t add(Awaited kind, const std::string& container_id, operations::OnOutcome on_outcome);
  bool has(Awaited kind, const std::string& container_id) const;
  /// Tells the outcome of one that is awaited.
  void settle(Awaited kind, const std::string& container_id, const operations::Outcome& outcome);
  /// The same, unless another one has come since `number`.
  void settle(Awaited kind, const std::string& container_id, std::uint64_t number, const operations::Outcome& outcome);
  /// Nobody tells any more.
  void leave_in_doubt(const Error& why);
  /// Tells nobody, as those who would be told are gone. Each entry holds an operation, which holds this.
  void forget_all();

 private:
  struct Entry {
    std::uint64_t number = 0;
    operations::OnOutcome on_outcome;
  };
  using Key = std::pair<Awaited, std::string>;

  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ TOPOLET_GUARDED_BY(mutex_);
  std::uint64_t last_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

operations::Outcome unknown_outcome(const Error& why);

}  // namespace topolet::nri
