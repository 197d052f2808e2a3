// Advice on a 403 of the API server: the file, of those that are applied to the cluster, which grants the missing
// right.
#pragma once

#include <string>
#include <string_view>

namespace topolet::api {

/// The sources of a program's rights.
struct Grants {
  std::string account;  ///< "topolet-agent": its service account, ClusterRole and Role
  std::string rights;   ///< "deploy/kubernetes/rbac.yaml": the file with these
  std::string pod;      ///< the file with the pod that has this account
  std::string policies = "deploy/kubernetes/policies.yaml";
  std::string token = {};  ///< makes another token for this program if it is not a pod; empty: nothing
};

/// Returns the advice as the end of a sentence: "; deploy/kubernetes/rbac.yaml grants it …". Empty if none of our files
/// concerns it. `message`: the server's.
std::string advice_on_refusal(const Grants& grants, std::string_view message);

}  // namespace topolet::api
