// Requests with what a kubelet puts into them: labels, annotations, environment, mounts and resources.
#pragma once

#include <cstdint>
#include <string>

namespace topolet::bench {

enum class Kind {
  kBestEffort,  ///< requests nothing: it runs on all shared CPUs
  kShared,      ///< of a Burstable pod: it runs on the shared CPUs of some nodes
  kExclusive,   ///< of a Guaranteed pod, with whole CPUs: it gets CPUs of its own
};

struct PodSpec {
  std::string name;  ///< its uid is made from it
  Kind kind = Kind::kShared;
  std::int64_t cpu_milli = 100;  ///< of each of its containers
  std::string cgroup_root = {};  ///< "", or "/topolet.x": where /kubepods is
  bool host_network = false;
};

struct ContainerSpec {
  std::string name;
  std::string image = "registry.example/shop/frontend:v2.14.3";
  bool sleeps = false;  ///< runs "sleep", for a runtime that really starts it
};

std::string run_sandbox_request(const PodSpec& pod);
/// About 1.7 KiB.
std::string create_request(const PodSpec& pod, const std::string& sandbox_id, const ContainerSpec& container);
/// For every method whose request names a sandbox or a container in its first field, and whose answer does.
std::string id_request(const std::string& id);
std::string id_in(const std::string& response);

}  // namespace topolet::bench
