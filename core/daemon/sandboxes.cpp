#include "core/daemon/sandboxes.hpp"

#include <algorithm>

#include "core/base/prefix.hpp"

namespace topolet {

void Sandboxes::load(const std::vector<PodRow>& rows) {
  for (const PodRow& row : rows) {
    Known& known = by_id_[row.sandbox_id];
    known.sandbox.id = row.sandbox_id;
    known.sandbox.pod_uid = row.pod_uid;
    known.sandbox.pod_namespace = row.pod_namespace;
    known.sandbox.pod_name = row.pod_name;
    known.sandbox.runtime_handler = row.runtime_handler;
    known.nodes = row.nodes;
  }
}

void Sandboxes::put(const Sandbox& sandbox) {
  // A pod whose sandbox is made anew stays where it is.
  Known next{sandbox, nodes_of_pod(sandbox.pod_uid, sandbox.id)};
  const auto known = by_id_.find(sandbox.id);
  if (known != by_id_.end()) {
    if (next.sandbox.annotations.empty()) next.sandbox.annotations = known->second.sandbox.annotations;
    if (known->second.sandbox == next.sandbox && known->second.nodes == next.nodes) return;
  }
  by_id_[sandbox.id] = next;
  write(next);
}

void Sandboxes::write(const Known& known) {
  const Sandbox& sandbox = known.sandbox;
  const PodRow row{sandbox.id,       sandbox.pod_uid,         sandbox.pod_namespace,
                   sandbox.pod_name, sandbox.runtime_handler, known.nodes};
  journal_.write([row](Store& store) { return store.put_pod(row); });
}

NodeSet Sandboxes::nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id) const {
  if (const auto known = by_id_.find(sandbox_id); known != by_id_.end() && !known->second.nodes.empty()) {
    return known->second.nodes;
  }
  if (pod_uid.empty()) return {};
  for (const auto& [id, known] : by_id_) {
    if (known.sandbox.pod_uid == pod_uid && !known.nodes.empty()) return known.nodes;
  }
  return {};
}

void Sandboxes::set_nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id, const NodeSet& nodes) {
  Known& known = by_id_[sandbox_id];
  known.sandbox.id = sandbox_id;
  known.sandbox.pod_uid = pod_uid;
  known.nodes = nodes;
  write(known);
}

void Sandboxes::remove(const std::string& sandbox_id) {
  if (by_id_.erase(sandbox_id) == 0) return;
  journal_.write([sandbox_id](Store& store) { return store.remove_pod(sandbox_id); });
}

const Sandbox* Sandboxes::find(const std::string& sandbox_id) const {
  const auto found = find_by_prefix(by_id_, sandbox_id);
  return found == by_id_.end() ? nullptr : &found->second.sandbox;
}

bool Sandboxes::places(const std::string& runtime_handler) const {
  return std::find(placed_handlers_.begin(), placed_handlers_.end(), runtime_handler) != placed_handlers_.end();
}

std::vector<std::string> Sandboxes::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, known] : by_id_) ids.push_back(id);
  return ids;
}

}  // namespace topolet
