#include "cluster/extender/shared_book.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/api/json_fields.hpp"

namespace topolet::extender {

RecentDemands::Read RecentDemands::find(const std::string& version) const {
  MutexLock lock(mutex_);
  const auto found = by_uid_.find(version.substr(0, version.find(' ')));
  return found != by_uid_.end() && found->second.version == version ? found->second.demand : nullptr;
}

RecentDemands::Read RecentDemands::find_by_uid(const std::string& uid) const {
  MutexLock lock(mutex_);
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second.demand;
}

void RecentDemands::add(const std::string& version, const std::string& uid, Read demand) {
  if (uid.empty()) return;
  MutexLock lock(mutex_);
  const bool is_new = by_uid_.insert_or_assign(uid, Entry{version, std::move(demand)}).second;
  if (!is_new) return;
  order_.push_back(uid);
  if (order_.size() <= most_) return;
  by_uid_.erase(order_.front());
  order_.pop_front();
}

RecentDemands::Read read_demand_of(const nlohmann::json& object, const ZoneDefaults& defaults, SharedBook& shared) {
  const api::Pod pod = api::read_pod(object);
  MutexLock lock(shared.mutex);
  Result<Demand> demand = read_demand(pod, defaults, shared.book.names(), shared.book.rules());
  if (demand) {
    const nlohmann::json& priority = api::field(object, "spec", "priority");
    demand->priority = priority.is_number_integer() ? priority.get<std::int64_t>() : 0;
    demand->nominated_node = api::text_field(object, "status", "nominatedNodeName");
  }
  return std::make_shared<const Result<Demand>>(std::move(demand));
}

}  // namespace topolet::extender
