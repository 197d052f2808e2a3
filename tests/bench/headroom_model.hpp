// A simple rule that leaves room beside GPUs, to compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/bench/churn.hpp"

namespace topolet::bench {

/// Counts CPUs by node, and moves nobody. The headroom of a node consists of the CPUs by its GPUs, for each GPU that no
/// pod has. A pod without a GPU goes to the node with the fewest free CPUs that holds it beside the headroom; if there
/// is none, to the one that holds it and is left with most beside the headroom. A pod with a GPU goes to the GPU's
/// node. CPUs that do not fit there are taken where most are free beside the headroom, one after the other.
class HeadroomModel {
 public:
  /// `node_of_gpu`: by place in `nodes`, which are the CPUs of each node.
  HeadroomModel(std::vector<std::uint32_t> nodes, std::vector<std::size_t> node_of_gpu);

  /// Admits the pod. Returns true if all its CPUs are on the node of its GPU; without a GPU, on one node. There must be
  /// enough CPUs.
  bool admit(std::size_t pod, const Arrival& arrival);
  void end(std::size_t pod);

 private:
  struct Node {
    std::int64_t free = 0;
    std::int64_t cpus_by_gpu = 0;
    std::int64_t unused_gpus = 0;

    std::int64_t beside_headroom() const { return free - unused_gpus * cpus_by_gpu; }
  };
  struct Pod {
    Arrival arrival;
    std::vector<std::int64_t> cpus;  ///< by node
  };

  std::size_t best_node(std::int64_t cpus) const;
  std::size_t emptiest() const;

  std::vector<Node> nodes_;
  std::vector<std::size_t> node_of_gpu_;
  std::map<std::size_t, Pod> pods_;
};

}  // namespace topolet::bench
