#include "core/daemon/effect.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet {

void Effect::apply(const std::string& container_id, const CpusetTarget& target, std::function<void(Status)> done) {
  parts_.log.debug("container {}: cpuset to {}", container_id, target.cpus.to_string());
  parts_.client.update_container(
      container_id, target.cpus, target.mems,
      [this, container_id, target, done = std::move(done)](const Status& status) {
        parts_.loop.post([this, container_id, target, done, status] { applied(container_id, target, status, done); });
      });
}

void Effect::applied(const std::string& container_id, const CpusetTarget& target, const Status& status,
                     const std::function<void(Status)>& done) {
  if (!status && status.error().code == Code::kNotFound) return done({});
  if (!status) return find_out_why(container_id, status, done);
  if (pids_.count(container_id) != 0) return done(check(container_id, target));
  inspect(container_id, [this, container_id, target, done](const Result<ContainerDetail>& detail) {
    if (!detail && detail.error().code != Code::kNotFound) return done(detail.error());
    done(check(container_id, target));
  });
}

void Effect::find_out_why(const std::string& container_id, const Status& failed, std::function<void(Status)> done) {
  inspect(container_id, [this, container_id, failed, done = std::move(done)](const Result<ContainerDetail>& detail) {
    const bool gone = !detail && detail.error().code == Code::kNotFound;
    const bool exited = detail && detail->info.state == ContainerState::kExited;
    if (!gone && !exited) return done(failed);
    done({});
    if (on_exited) on_exited(container_id);
  });
}

void Effect::list(std::function<void(Result<std::vector<Sandbox>>, Result<std::vector<ContainerInfo>>)> done) {
  parts_.client.list_containers([this, done = std::move(done)](const Result<std::vector<ContainerInfo>>& containers) {
    parts_.client.list_sandboxes([this, done, containers](const Result<std::vector<Sandbox>>& sandboxes) {
      parts_.loop.post([done, containers, sandboxes] { done(sandboxes, containers); });
    });
  });
}

void Effect::inspect(const std::string& container_id, std::function<void(Result<ContainerDetail>)> done) {
  parts_.client.container_status(container_id,
                                 [this, container_id, done = std::move(done)](const Result<ContainerDetail>& detail) {
                                   parts_.loop.post([this, container_id, done, detail] {
                                     if (detail && detail->info.state == ContainerState::kRunning && detail->pid > 0) {
                                       pids_[container_id] = detail->pid;
                                     } else {
                                       pids_.erase(container_id);
                                     }
                                     done(detail);
                                   });
                                 });
}

Status Effect::check(const std::string& container_id, const CpusetTarget& target) const {
  const auto known = pids_.find(container_id);
  if (known == pids_.end()) return {};
  const std::optional<CpuSet> effective = parts_.kernel.effective_cpus(known->second);
  if (!effective || effective->is_subset_of(target.cpus)) return {};
  return Error{Code::kInternal, fmt::format("the kernel has process {} on CPUs {} instead of {}", known->second,
                                            effective->to_string(), target.cpus.to_string())};
}

}  // namespace topolet
