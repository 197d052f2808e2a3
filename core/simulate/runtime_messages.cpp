#include "core/simulate/runtime_messages.hpp"

#include <algorithm>

namespace topolet::simulate {

cri::RuntimeResponse ok_answer() { return {Code::kOk, {}, {}}; }

cri::RuntimeResponse ok_answer(const google::protobuf::MessageLite& message) {
  return {Code::kOk, {}, message.SerializeAsString()};
}

cri::RuntimeResponse ok_answer_with_id(const std::string& id) {
  lens::Target target;
  target.set_id(id);
  return ok_answer(target);
}

cri::RuntimeResponse answer_with_sandboxes(const std::map<std::string, lens::PodSandbox>& sandboxes) {
  lens::ListPodSandboxResponse response;
  for (const auto& [id, sandbox] : sandboxes) *response.add_items() = sandbox;
  return ok_answer(response);
}

void update_resources(lens::Resources& resources, const lens::Resources& update) {
  if (update.cpu_period_us() != 0) resources.set_cpu_period_us(update.cpu_period_us());
  if (update.cpu_quota_us() != 0) resources.set_cpu_quota_us(update.cpu_quota_us());
  if (update.cpu_shares() != 0) resources.set_cpu_shares(update.cpu_shares());
  if (update.memory_limit_bytes() != 0) resources.set_memory_limit_bytes(update.memory_limit_bytes());
  for (const lens::Hugepages& pages : update.hugepage_limits()) {
    const auto known =
        std::find_if(resources.mutable_hugepage_limits()->begin(), resources.mutable_hugepage_limits()->end(),
                     [&](const auto& other) { return other.page_size() == pages.page_size(); });
    const bool is_new = known == resources.mutable_hugepage_limits()->end();
    (is_new ? *resources.add_hugepage_limits() : *known) = pages;
  }
  for (const lens::Entry& file : update.unified()) {
    const auto known = std::find_if(resources.mutable_unified()->begin(), resources.mutable_unified()->end(),
                                    [&](const auto& other) { return other.key() == file.key(); });
    (known == resources.mutable_unified()->end() ? *resources.add_unified() : *known) = file;
  }
  if (!update.cpuset_cpus().empty()) resources.set_cpuset_cpus(update.cpuset_cpus());
  if (!update.cpuset_mems().empty()) resources.set_cpuset_mems(update.cpuset_mems());
}

}  // namespace topolet::simulate
