// The pods of the story: made and removed through topolet, and compared, ledger against kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "tests/integration/cri_client.hpp"
#include "tests/integration/process_cpuset.hpp"
#include "tests/integration/state_db.hpp"

namespace topolet::integration {

/// One running container as the ledger and the kernel have it.
struct ContainerReading {
  std::string pod;
  std::string qos;
  std::string container_id;
  bool held = false;  ///< the ledger has a row for it
  PlacementRow ledger;
  ProcessCpuset kernel;
  ProcessCpuset inside;  ///< what the container itself reads
};

/// Returns the disagreements between ledger and kernel, one sentence each. They agree if every container's CPUs (and
/// its memory nodes where topolet set them) are the ledger's, and no exclusive CPU is anybody else's.
std::vector<std::string> disagreements(const std::vector<ContainerReading>& readings);

struct PodGroupOptions {
  std::string endpoint;
  std::string state_db;
  std::string image;
  std::string owner;  ///< a label's value by which the pods are found again
  CgroupNaming cgroups;
};

/// Not synchronised.
class PodGroup {
 public:
  explicit PodGroup(PodGroupOptions options);

  /// A pod with one running container. After an error nothing of it is left.
  Status start_pod(const std::string& name, const Resources& resources);
  /// Stops the container and its pod, and removes both.
  Status end_pod(const std::string& name);
  Result<std::vector<ContainerReading>> read_all();
  Result<std::string> denial(const std::string& name) const { return state_.last_denial(name); }
  Result<std::vector<PlacementRow>> held() const { return state_.held(); }
  /// Removes every pod with our owner label, known or not.
  Status clear();

 private:
  struct Member {
    Pod pod;
    std::string container_id;
  };
  Status run_container(Member& member);
  Result<ContainerReading> read_one(const Member& member, const std::vector<PlacementRow>& held);

  PodGroupOptions options_;
  CriClient client_;
  StateDb state_;
  std::vector<Member> members_;
};

}  // namespace topolet::integration
