// A kubelet that makes one container after another in a pod.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/kubelet_requests.hpp"
#include "tests/bench/load_client.hpp"

namespace topolet::bench {

/// The methods of one container's life, in order.
using Cycle = std::vector<std::string>;
inline const Cycle kWholeLife = {"CreateContainer", "StartContainer", "StopContainer", "RemoveContainer"};
inline const Cycle kNeverStarted = {"CreateContainer", "RemoveContainer"};

/// The kind of a step is the place of its method in the cycle.
class CycleScript final : public Script {
 public:
  CycleScript(PodSpec pod, std::string sandbox_id, const Cycle& cycle, std::size_t cycles)
      : pod_(std::move(pod)), sandbox_id_(std::move(sandbox_id)), cycle_(cycle), left_(cycles) {}

  bool next(grpc::ByteBuffer& response, Step& step) override;

 private:
  const PodSpec pod_;
  const std::string sandbox_id_;
  const Cycle& cycle_;
  std::size_t left_;
  std::size_t at_ = 0;
  grpc::ByteBuffer id_request_;
};

/// Pods whose kubelets work at the same time. The sandboxes stay until clear().
class CyclePods {
 public:
  CyclePods(LoadClient& client, const PodSpec& pod, std::size_t pods);

  /// Each pod's containers in turn, all pods at once. The microseconds of the calls of each method of the cycle.
  std::vector<std::vector<double>> run(const Cycle& cycle, std::size_t cycles_per_pod);
  void clear();

 private:
  PodSpec pod_of(std::size_t number) const;

  LoadClient& client_;
  PodSpec pod_;
  std::vector<std::string> sandbox_ids_;
};

}  // namespace topolet::bench
