// A pod as the API server tells it: of all that it has, what a place on the node depends on.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace topolet::api {

/// Amounts that a container requests, or its limits.
struct Amounts {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::map<std::string, std::int64_t> huge_page_bytes = {};  ///< by page size, "2Mi"
  std::map<std::string, std::int64_t> devices = {};          ///< by resource, "vendor.com/gpu"

  /// Raises each resource to at least that of `other`.
  void raise_to(const Amounts& other);
  void add(const Amounts& other);
  /// Subtracts each resource, down to 0 at least.
  void subtract(const Amounts& other);

  friend bool operator==(const Amounts&, const Amounts&) = default;
};

struct PodContainer {
  enum class Kind {
    kMain,
    kSidecar,  ///< an init container that goes on running
    kInit,     ///< one that ends before what comes after it begins
  };
  std::string name;
  Kind kind = Kind::kMain;
  Amounts requests;  ///< what the scheduler counts: during a resize the largest of what is, was and will be
  Amounts limits;    ///< those that are wished, or, where a resize can never be done, those that it has
  Amounts actual;    ///< requests that the kubelet has carried out; empty where it does not say
  /// A resize of it is carried out by creating it anew.
  bool is_created_anew_for_cpus = false;
  bool is_created_anew_for_memory = false;
  bool has_ended = false;  ///< for good
};

struct Pod {
  std::string uid;
  /// Under which the container runtime knows it: that of a static pod is not the uid of its mirror on the API server.
  std::string runtime_uid;
  std::string name;
  std::string name_space;
  std::string phase;       ///< Pending, Running, Succeeded, Failed, Unknown
  std::string qos;         ///< guaranteed, burstable, besteffort
  std::string created_at;  ///< as text, it sorts by time
  std::map<std::string, std::string> annotations;
  std::vector<PodContainer> containers;  ///< the init ones first, each in the pod's order
  Amounts pod_requests;                  ///< of the pod as a whole, where it says so

  bool is_terminal() const { return phase == "Succeeded" || phase == "Failed"; }
  /// Returns the amounts that the scheduler counts for the pod while it has containers to run. Source: the scheduler's
  /// rules for init containers and sidecars (KEP-753).
  Amounts effective_requests() const;
};

/// Reads a Pod object. Fields that are missing or not understood stay empty.
Pod read_pod(const nlohmann::json& object);

}  // namespace topolet::api
