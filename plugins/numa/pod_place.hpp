// The places of the other containers of a pod.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <vector>

namespace topolet::numa {

/// The total requests of the pod's containers that are placed already.
struct PlacedOfPod {
  std::int64_t milli = 0;  ///< of CPUs
  std::int64_t memory_bytes = 0;
};
PlacedOfPod placed_of_pod(const topolet_request& request);

/// The nodes that they run on. Containers that request nothing count only if they are kept to one node.
class PodPlace {
 public:
  explicit PodPlace(const topolet_request& request);

  /// Returns true if no container of the pod is on any node.
  bool empty() const { return parts_.empty(); }
  /// How far the nodes at these positions are from the pod: 0 if all of it is on them, else the more, the more of it is
  /// elsewhere and the farther away. `has_others`: CPUs outside any node, too.
  std::uint32_t distance_to(const std::vector<std::uint32_t>& positions, bool has_others) const;

 private:
  static constexpr std::uint32_t kOutside = TOPOLET_NONE;  ///< CPUs outside any node are one more

  struct Part {
    std::uint32_t node = 0;  ///< by position, or kOutside
    std::int64_t milli = 0;
  };

  void add(std::uint32_t node, std::int64_t milli);
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const;

  const topolet_topology& topology_;
  std::vector<std::uint32_t> packages_;  ///< by position
  std::vector<Part> parts_;
};

}  // namespace topolet::numa
