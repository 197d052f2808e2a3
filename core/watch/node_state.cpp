#include "core/watch/node_state.hpp"

namespace topolet::watch {

void NodeState::begin(const v1::Snapshot& snapshot) {
  containers_.clear();
  for (const v1::Container& container : snapshot.containers()) put(container);
  head_ = snapshot;
  head_.clear_containers();
  capacities_.clear();
  for (const v1::Capacity& told : snapshot.capacities()) capacities_[told.node()] = told;
  head_.clear_capacities();
}

void NodeState::apply(const v1::Delta& delta) {
  head_.set_generation(delta.generation());
  for (const v1::Container& container : delta.changed()) put(container);
  for (const v1::ContainerKey& key : delta.ended()) containers_.erase(key.SerializeAsString());
  for (const v1::Capacity& told : delta.capacities()) capacities_[told.node()] = told;
  for (const std::uint32_t node : delta.capacities_ended()) capacities_.erase(node);
  if (delta.has_cpus()) *head_.mutable_cpus() = delta.cpus();
  if (delta.has_machine()) *head_.mutable_machine() = delta.machine();
  if (delta.has_reconciled()) head_.set_reconciled(delta.reconciled());
  if (delta.has_plugins()) *head_.mutable_plugins() = delta.plugins().plugins();
}

v1::Snapshot NodeState::whole() const {
  v1::Snapshot snapshot = head_;
  for (const auto& [key, container] : containers_) *snapshot.add_containers() = container;
  for (const auto& [node, told] : capacities_) *snapshot.add_capacities() = told;
  return snapshot;
}

void NodeState::put(const v1::Container& container) { containers_[container.key().SerializeAsString()] = container; }

}  // namespace topolet::watch
