#include "core/fronts/nri/own_updates.hpp"

#include <iterator>
#include <utility>

namespace topolet::nri {
namespace {

const Error kNotAsked{Code::kUnavailable, "the runtime has not asked topolet about the update; its CPUs were not set"};

/// Nothing but what is told by topolet besides: a kubelet that changes a container has more to say.
bool asks_for_nothing(const operations::ResourceUpdate& event) {
  return event.cpus.empty() && event.mems.empty() && event.cpu_shares == 0 && event.memory_limit_bytes == 0 &&
         event.hugepage_limit_bytes.empty();
}

operations::ContainerCpuset without_cpus(operations::ContainerCpuset set) {
  set.cpus = {};
  set.mems = {};
  return set;
}

}  // namespace

void OwnUpdates::set_asked(bool is_asked) {
  const MutexLock lock(state_->mutex);
  state_->is_asked = is_asked;
}

void OwnUpdates::update(const std::string& container_id, const operations::ContainerCpuset& set,
                        std::function<void(Status)> done) {
  std::list<UnderWay>::iterator entry;
  bool is_whole = false;
  {
    const MutexLock lock(state_->mutex);
    is_whole = !state_->is_asked;
    state_->updates.push_back({container_id, set, is_whole, false});
    entry = std::prev(state_->updates.end());
  }
  runtime_.update(container_id, is_whole ? set : without_cpus(set),
                  [state = state_, entry, done = std::move(done)](const Status& status) {
                    bool was_told = false;
                    {
                      const MutexLock lock(state->mutex);
                      was_told = entry->is_whole || entry->has_come_back;
                      state->updates.erase(entry);
                    }
                    done(status && !was_told ? Status(kNotAsked) : status);
                  });
}

std::optional<operations::ContainerCpuset> OwnUpdates::take(const operations::ResourceUpdate& event) {
  const MutexLock lock(state_->mutex);
  for (UnderWay& update : state_->updates) {
    if (update.has_come_back || !is_same(update, event)) continue;
    update.has_come_back = true;
    return update.set;
  }
  return std::nullopt;
}

bool OwnUpdates::is_same(const UnderWay& update, const operations::ResourceUpdate& event) {
  if (update.container_id != event.container_id) return false;
  if (update.is_whole) return update.set.cpus == event.cpus && update.set.mems == event.mems;
  return asks_for_nothing(event);
}

}  // namespace topolet::nri
