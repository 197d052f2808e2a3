#include "core/watch/node_state.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace topolet::watch {
namespace {

/// Maps are in any order otherwise.
template <class Message>
std::string ordered_bytes(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

template <class Message>
bool is_same(const Message& a, const Message& b) {
  return ordered_bytes(a) == ordered_bytes(b);
}

}  // namespace

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
  if (delta.has_illnesses()) *head_.mutable_illnesses() = delta.illnesses();
  if (delta.has_plugins()) *head_.mutable_plugins() = delta.plugins().plugins();
}

v1::Delta NodeState::difference_to(const v1::Snapshot& next) const {
  v1::Delta delta;
  delta.set_generation(next.generation());
  NodeState after;
  after.begin(next);
  for (const auto& [key, container] : after.containers_) {
    const auto before = containers_.find(key);
    if (before == containers_.end() || !is_same(before->second, container)) *delta.add_changed() = container;
  }
  for (const auto& [key, container] : containers_) {
    if (after.containers_.count(key) == 0) *delta.add_ended() = container.key();
  }
  for (const auto& [node, told] : after.capacities_) {
    const auto before = capacities_.find(node);
    if (before == capacities_.end() || !is_same(before->second, told)) *delta.add_capacities() = told;
  }
  for (const auto& [node, told] : capacities_) {
    if (after.capacities_.count(node) == 0) delta.add_capacities_ended(node);
  }
  if (!is_same(head_.cpus(), next.cpus())) *delta.mutable_cpus() = next.cpus();
  if (!is_same(head_.machine(), next.machine())) *delta.mutable_machine() = next.machine();
  if (head_.reconciled() != next.reconciled()) delta.set_reconciled(next.reconciled());
  if (!is_same(head_.illnesses(), next.illnesses())) *delta.mutable_illnesses() = next.illnesses();
  *delta.mutable_plugins()->mutable_plugins() = next.plugins();
  return delta;
}

void NodeState::set_teller(const v1::Snapshot& teller) {
  head_.set_instance(teller.instance());
  head_.set_version(teller.version());
  head_.set_host(teller.host());
}

v1::Snapshot NodeState::whole() const {
  v1::Snapshot snapshot = head_;
  for (const auto& [key, container] : containers_) *snapshot.add_containers() = container;
  for (const auto& [node, told] : capacities_) *snapshot.add_capacities() = told;
  return snapshot;
}

void NodeState::put(const v1::Container& container) { containers_[container.key().SerializeAsString()] = container; }

}  // namespace topolet::watch
