#include "tests/bench/population.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kContainersPerPod = 5;
constexpr std::int64_t kRequestMilli = 100;

}  // namespace

void Population::grow_to(std::size_t containers, Kind kind) {
  while (container_ids_.size() < containers) add_pod(kind);
}

void Population::add_pod(Kind kind) {
  const char* prefix = kind == Kind::kBestEffort ? "idler" : "neighbour";
  const PodSpec pod{.name = fmt::format("{}-{:04}", prefix, sandbox_ids_.size()),
                    .kind = kind,
                    .cpu_milli = kind == Kind::kBestEffort ? 0 : kRequestMilli};
  const std::string& sandbox =
      sandbox_ids_.emplace_back(id_in(client_.call(kServicePath + "RunPodSandbox", run_sandbox_request(pod))));
  for (std::size_t i = 0; i < kContainersPerPod; ++i) {
    const std::string request = create_request(pod, sandbox, {.name = fmt::format("container-{}", i)});
    const std::string& id = container_ids_.emplace_back(id_in(client_.call(kServicePath + "CreateContainer", request)));
    client_.call(kServicePath + "StartContainer", id_request(id));
  }
}

void Population::clear() {
  end(container_ids_, "StopContainer", "RemoveContainer");
  end(sandbox_ids_, "StopPodSandbox", "RemovePodSandbox");
  container_ids_.clear();
  sandbox_ids_.clear();
}

void Population::end(const std::vector<std::string>& ids, const std::string& stop, const std::string& remove) {
  for (const std::string& id : ids) {
    client_.call(kServicePath + stop, id_request(id));
    client_.call(kServicePath + remove, id_request(id));
  }
}

}  // namespace topolet::bench
