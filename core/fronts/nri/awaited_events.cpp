#include "core/fronts/nri/awaited_events.hpp"

#include <optional>

namespace topolet::nri {

operations::Outcome unknown_outcome(const Error& why) {
  return {.kind = operations::Outcome::Kind::kUnknown, .code = why.code, .message = why.message};
}

std::uint64_t AwaitedEvents::add(Awaited kind, const std::string& container_id, operations::OnOutcome on_outcome) {
  Entry older;
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++last_;
    older = std::exchange(entries_[{kind, container_id}], Entry{number, std::move(on_outcome)});
  }
  if (older.on_outcome)
    older.on_outcome(unknown_outcome({Code::kUnavailable, "the runtime has not said what became of it"}));
  return number;
}

bool AwaitedEvents::has(Awaited kind, const std::string& container_id) const {
  const MutexLock lock(mutex_);
  return entries_.count({kind, container_id}) != 0;
}

void AwaitedEvents::settle(Awaited kind, const std::string& container_id, const operations::Outcome& outcome) {
  settle(kind, container_id, 0, outcome);
}

void AwaitedEvents::settle(Awaited kind, const std::string& container_id, std::uint64_t number,
                           const operations::Outcome& outcome) {
  operations::OnOutcome on_outcome;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find({kind, container_id});
    if (found == entries_.end() || (number != 0 && found->second.number != number)) return;
    on_outcome = std::move(found->second.on_outcome);
    entries_.erase(found);
  }
  on_outcome(outcome);
}

void AwaitedEvents::leave_in_doubt(const Error& why) {
  std::map<Key, Entry> entries;
  {
    const MutexLock lock(mutex_);
    entries.swap(entries_);
  }
  for (const auto& [key, entry] : entries) entry.on_outcome(unknown_outcome(why));
}

void AwaitedEvents::forget_all() {
  std::map<Key, Entry> entries;
  {
    const MutexLock lock(mutex_);
    entries.swap(entries_);
  }
}

}  // namespace topolet::nri
