#include "tests/bench/cycle_script.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tests/bench/roles.hpp"

namespace topolet::bench {

bool CycleScript::next(grpc::ByteBuffer& response, Step& step) {
  if (at_ == cycle_.size()) at_ = 0;
  step.path = kServicePath + cycle_[at_];
  step.kind = at_;
  if (at_++ == 0) {
    if (left_ == 0) return false;
    step.request = to_buffer(create_request(pod_, sandbox_id_, {.name = fmt::format("container-{}", left_--)}));
    return true;
  }
  if (at_ == 2) id_request_ = to_buffer(id_request(id_in(to_bytes(response))));
  step.request = id_request_;
  return true;
}

CyclePods::CyclePods(LoadClient& client, const PodSpec& pod, std::size_t pods) : client_(client), pod_(pod) {
  for (std::size_t i = 0; i < pods; ++i) {
    sandbox_ids_.push_back(id_in(client_.call(kServicePath + "RunPodSandbox", run_sandbox_request(pod_of(i)))));
  }
}

PodSpec CyclePods::pod_of(std::size_t number) const {
  PodSpec pod = pod_;
  pod.name += fmt::format("-{:03}", number);
  return pod;
}

std::vector<std::vector<double>> CyclePods::run(const Cycle& cycle, std::size_t cycles_per_pod) {
  std::vector<std::unique_ptr<Script>> scripts;
  for (std::size_t i = 0; i < sandbox_ids_.size(); ++i) {
    scripts.push_back(std::make_unique<CycleScript>(pod_of(i), sandbox_ids_[i], cycle, cycles_per_pod));
  }
  return client_.run(scripts, cycle.size());
}

void CyclePods::clear() {
  for (const std::string& id : sandbox_ids_) {
    client_.call(kServicePath + "StopPodSandbox", id_request(id));
    client_.call(kServicePath + "RemovePodSandbox", id_request(id));
  }
  sandbox_ids_.clear();
}

}  // namespace topolet::bench
