#include "core/daemon/sandboxes.hpp"

#include <algorithm>

#include "core/base/prefix.hpp"

namespace topolet {

void Sandboxes::load(const std::vector<PodRow>& rows) {
  for (const PodRow& row : rows) {
    by_id_[row.sandbox_id] = {row.sandbox_id, row.pod_uid, row.pod_namespace, row.pod_name, row.runtime_handler, true};
  }
}

void Sandboxes::put(const Sandbox& sandbox) {
  const auto known = by_id_.find(sandbox.id);
  if (known != by_id_.end() && known->second == sandbox) return;
  by_id_[sandbox.id] = sandbox;
  const PodRow row{sandbox.id, sandbox.pod_uid, sandbox.pod_namespace, sandbox.pod_name, sandbox.runtime_handler};
  journal_.write([row](Store& store) { return store.put_pod(row); });
}

void Sandboxes::remove(const std::string& sandbox_id) {
  if (by_id_.erase(sandbox_id) == 0) return;
  journal_.write([sandbox_id](Store& store) { return store.remove_pod(sandbox_id); });
}

const Sandbox* Sandboxes::find(const std::string& sandbox_id) const {
  const auto found = find_by_prefix(by_id_, sandbox_id);
  return found == by_id_.end() ? nullptr : &found->second;
}

bool Sandboxes::places(const std::string& runtime_handler) const {
  return std::find(placed_handlers_.begin(), placed_handlers_.end(), runtime_handler) != placed_handlers_.end();
}

std::vector<std::string> Sandboxes::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : by_id_) ids.push_back(id);
  return ids;
}

}  // namespace topolet
