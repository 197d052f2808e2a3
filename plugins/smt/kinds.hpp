// Containers that are the same but for when and in which pod they run.
#pragma once

#include <topolet/policy.hpp>

#include <string>

namespace topolet::smt {

/// The name of what owns a pod, read from its name and from the labels that Kubernetes' controllers set: "web" of pod
/// "web-5d4f9c-x7k2p" of a Deployment, "db" of "db-0" of a StatefulSet, "log" of "log-x7k2p" of a DaemonSet, "report"
/// of each Job of a CronJob. A pod without such labels is its own owner.
std::string owner_of(std::string_view pod_name, topolet_kvs pod_labels);

/// "NAMESPACE/OWNER/CONTAINER".
std::string kind_of(const topolet_workload& workload);
std::string kind_of(const topolet_ledger_entry& entry);

}  // namespace topolet::smt
