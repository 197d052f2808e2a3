#include "plugins/smt/kinds.hpp"

#include <algorithm>

namespace topolet::smt {
namespace {

/// Times of a CronJob's Jobs have at least so many digits: minutes since 1970.
constexpr std::size_t kLeastTimeDigits = 8;

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "a-b" of "a-b-c".
std::string_view without_last_part(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  return dash == std::string_view::npos || dash == 0 ? name : name.substr(0, dash);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('-') + 1); }

std::string_view owner_of_job(std::string_view job) {
  const std::string_view time = last_part(job);
  return is_number(time) && time.size() >= kLeastTimeDigits ? without_last_part(job) : job;
}

std::string join_kind(std::string_view pod_namespace, std::string_view pod_name, topolet_kvs labels,
                      std::string_view container) {
  return std::string(pod_namespace) + '/' + owner_of(pod_name, labels) + '/' + std::string(container);
}

}  // namespace

std::string owner_of(std::string_view pod_name, topolet_kvs pod_labels) {
  for (const char* label : {"batch.kubernetes.io/job-name", "job-name"}) {
    if (const auto job = sdk::find_value(pod_labels, label)) return std::string(owner_of_job(*job));
  }
  if (const auto hash = sdk::find_value(pod_labels, "pod-template-hash")) {
    const std::string_view replica_set = without_last_part(pod_name);
    return std::string(last_part(replica_set) == *hash ? without_last_part(replica_set) : replica_set);
  }
  const bool is_revised = sdk::find_value(pod_labels, "controller-revision-hash").has_value();
  return std::string(is_revised ? without_last_part(pod_name) : pod_name);
}

std::string kind_of(const topolet_workload& workload) {
  return join_kind(sdk::text(workload.pod_namespace), sdk::text(workload.pod_name), workload.pod_labels,
                   sdk::text(workload.container_name));
}

std::string kind_of(const topolet_ledger_entry& entry) {
  return join_kind(sdk::text(entry.pod_namespace), sdk::text(entry.pod_name), entry.pod_labels,
                   sdk::text(entry.container_name));
}

}  // namespace topolet::smt
