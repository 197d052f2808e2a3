#include "tests/integration/cast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace topolet::integration {
namespace {

constexpr std::size_t kShortId = 13;  // as crictl shows them
constexpr char kOwnerLabel[] = "topolet.io/story";

std::string random_uid() {
  std::ifstream file("/proc/sys/kernel/random/uuid");
  std::string uid;
  file >> uid;
  return uid;
}

Error about(const std::string& what, const Error& error) {
  return {error.code, fmt::format("{}: {}", what, error.message)};
}

void check_one(const Sight& sight, std::vector<std::string>& wrong) {
  if (!sight.held) {
    wrong.push_back(
        fmt::format("{}: the ledger knows nothing of container {}", sight.pod, sight.container_id.substr(0, kShortId)));
    return;
  }
  if (sight.kernel.cpus != sight.ledger.cpus) {
    wrong.push_back(fmt::format("{}: the ledger says CPUs {}, the kernel {}", sight.pod, sight.ledger.cpus.to_string(),
                                sight.kernel.cpus.to_string()));
  }
  if (!sight.ledger.mems.empty() && sight.kernel.mems != sight.ledger.mems) {
    wrong.push_back(fmt::format("{}: the ledger says memory nodes {}, the kernel {}", sight.pod,
                                sight.ledger.mems.to_string(), sight.kernel.mems.to_string()));
  }
  if (!(sight.inside == sight.kernel)) {
    wrong.push_back(fmt::format("{}: the container itself reads CPUs {}, memory nodes {}", sight.pod,
                                sight.inside.cpus.to_string(), sight.inside.mems.to_string()));
  }
}

void check_pair(const Sight& owner, const Sight& other, std::vector<std::string>& wrong) {
  const CpuSet alone = owner.ledger.mode == "exclusive" ? owner.ledger.cpus | owner.ledger.withheld : CpuSet{};
  if (alone.intersects(other.kernel.cpus)) {
    wrong.push_back(fmt::format("{}: may run on CPUs {}, which {} has alone", other.pod,
                                (alone & other.kernel.cpus).to_string(), owner.pod));
  }
}

}  // namespace

std::vector<std::string> disagreements(const std::vector<Sight>& sights) {
  std::vector<std::string> wrong;
  for (const Sight& sight : sights) {
    check_one(sight, wrong);
    for (const Sight& other : sights) {
      if (&other != &sight) check_pair(sight, other, wrong);
    }
  }
  return wrong;
}

Cast::Cast(CastOptions options) : options_(std::move(options)), client_(options_.endpoint), state_(options_.state_db) {}

Status Cast::run_container(Member& member) {
  if (Status ran = client_.run(member.pod); !ran) return about("RunPodSandbox", ran.error());
  auto id = client_.create(member.pod, {.image = options_.image});
  if (!id) return about("CreateContainer", id.error());
  member.container_id = *id;
  if (Status started = client_.start(*id); !started) return about("StartContainer", started.error());
  return {};
}

Status Cast::enter(const std::string& name, const Resources& resources) {
  Member member{{name, random_uid(), resources, options_.cgroups, {{kOwnerLabel, options_.owner}}, {}}, {}};
  Status running = run_container(member);
  if (running) {
    members_.push_back(std::move(member));
  } else if (!member.pod.sandbox_id.empty()) {
    // The first error is the one to tell.
    (void)client_.stop(member.pod);
    (void)client_.remove(member.pod);
  }
  return running;
}

Status Cast::leave(const std::string& name) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.pod.name == name; });
  if (found == members_.end()) return {};
  const Member member = std::move(*found);
  members_.erase(found);
  if (Status done = client_.stop(member.container_id); !done) return about("StopContainer", done.error());
  if (Status done = client_.remove(member.container_id); !done) return about("RemoveContainer", done.error());
  if (Status done = client_.stop(member.pod); !done) return about("StopPodSandbox", done.error());
  if (Status done = client_.remove(member.pod); !done) return about("RemovePodSandbox", done.error());
  return {};
}

Result<Sight> Cast::look_at(const Member& member, const std::vector<Held>& held) {
  const auto container = client_.inspect(member.container_id);
  if (!container) return about("ContainerStatus", container.error());
  const auto kernel = allowed_of(container->pid);
  if (!kernel) return about(member.pod.name, kernel.error());
  const auto status = client_.exec(member.container_id, {"cat", "/proc/self/status"});
  if (!status) return about("ExecSync", status.error());
  const auto inside = parse_allowed(status->out);
  if (!inside) return about(member.pod.name, inside.error());
  Sight sight{member.pod.name, member.pod.resources.qos(), member.container_id, false, {}, *kernel, *inside};
  for (const Held& row : held) {
    if (row.container_id != member.container_id) continue;
    sight.held = true;
    sight.ledger = row;
  }
  return sight;
}

Result<std::vector<Sight>> Cast::look() {
  const auto rows = held();
  if (!rows) return rows.error();
  std::vector<Sight> sights;
  for (const Member& member : members_) {
    auto sight = look_at(member, *rows);
    if (!sight) return sight.error();
    sights.push_back(std::move(*sight));
  }
  return sights;
}

Status Cast::clear() {
  members_.clear();
  const auto pods = client_.pods({{kOwnerLabel, options_.owner}});
  if (!pods) return about("ListPodSandbox", pods.error());
  for (const cri::PodSandbox& pod : *pods) {
    if (Status done = client_.stop_sandbox(pod.id()); !done) return about("StopPodSandbox", done.error());
    if (Status done = client_.remove_sandbox(pod.id()); !done) return about("RemovePodSandbox", done.error());
  }
  return {};
}

}  // namespace topolet::integration
