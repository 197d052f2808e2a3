#include "core/fronts/nri/own_updates.hpp"

#include <iterator>
#include <utility>

namespace topolet::nri {

void OwnUpdates::update(const std::string& container_id, const operations::ContainerCpuset& set,
                        std::function<void(Status)> done) {
  std::list<UnderWay>::iterator entry;
  {
    const MutexLock lock(state_->mutex);
    state_->updates.push_back({container_id, set});
    entry = std::prev(state_->updates.end());
  }
  runtime_.update(container_id, set, [state = state_, entry, done = std::move(done)](const Status& status) {
    {
      const MutexLock lock(state->mutex);
      state->updates.erase(entry);
    }
    done(status);
  });
}

std::optional<operations::ContainerCpuset> OwnUpdates::take(const operations::ResourceUpdate& event) {
  const MutexLock lock(state_->mutex);
  for (UnderWay& update : state_->updates) {
    const bool is_it = !update.has_come_back && update.container_id == event.container_id &&
                       update.set.cpus == event.cpus && update.set.mems == event.mems;
    if (!is_it) continue;
    update.has_come_back = true;
    return update.set;
  }
  return std::nullopt;
}

}  // namespace topolet::nri
