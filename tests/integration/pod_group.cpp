#include "tests/integration/pod_group.hpp"

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

void check_one(const ContainerReading& reading, std::vector<std::string>& wrong) {
  if (!reading.held) {
    wrong.push_back(fmt::format("{}: the ledger knows nothing of container {}", reading.pod,
                                reading.container_id.substr(0, kShortId)));
    return;
  }
  if (reading.kernel.cpus != reading.ledger.cpus) {
    wrong.push_back(fmt::format("{}: the ledger says CPUs {}, the kernel {}", reading.pod,
                                reading.ledger.cpus.to_string(), reading.kernel.cpus.to_string()));
  }
  if (!reading.ledger.mems.empty() && reading.kernel.mems != reading.ledger.mems) {
    wrong.push_back(fmt::format("{}: the ledger says memory nodes {}, the kernel {}", reading.pod,
                                reading.ledger.mems.to_string(), reading.kernel.mems.to_string()));
  }
  if (!(reading.inside == reading.kernel)) {
    wrong.push_back(fmt::format("{}: the container itself reads CPUs {}, memory nodes {}", reading.pod,
                                reading.inside.cpus.to_string(), reading.inside.mems.to_string()));
  }
}

void check_pair(const ContainerReading& owner, const ContainerReading& other, std::vector<std::string>& wrong) {
  const CpuSet alone = owner.ledger.mode == "exclusive" ? owner.ledger.cpus | owner.ledger.withheld : CpuSet{};
  if (alone.intersects(other.kernel.cpus)) {
    wrong.push_back(fmt::format("{}: may run on CPUs {}, which {} has alone", other.pod,
                                (alone & other.kernel.cpus).to_string(), owner.pod));
  }
}

}  // namespace

std::vector<std::string> disagreements(const std::vector<ContainerReading>& readings) {
  std::vector<std::string> wrong;
  for (const ContainerReading& reading : readings) {
    check_one(reading, wrong);
    for (const ContainerReading& other : readings) {
      if (&other != &reading) check_pair(reading, other, wrong);
    }
  }
  return wrong;
}

PodGroup::PodGroup(PodGroupOptions options)
    : options_(std::move(options)), client_(options_.endpoint), state_(options_.state_db) {}

Status PodGroup::run_container(Member& member) {
  if (Status ran = client_.run(member.pod); !ran) return about("RunPodSandbox", ran.error());
  auto id = client_.create(member.pod, {.image = options_.image});
  if (!id) return about("CreateContainer", id.error());
  member.container_id = *id;
  if (Status started = client_.start(*id); !started) return about("StartContainer", started.error());
  return {};
}

Status PodGroup::start_pod(const std::string& name, const Resources& resources) {
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

Status PodGroup::end_pod(const std::string& name) {
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

Result<ContainerReading> PodGroup::read_one(const Member& member, const std::vector<PlacementRow>& held) {
  const auto container = client_.inspect(member.container_id);
  if (!container) return about("ContainerStatus", container.error());
  const auto kernel = allowed_of(container->pid);
  if (!kernel) return about(member.pod.name, kernel.error());
  const auto status = client_.exec(member.container_id, {"cat", "/proc/self/status"});
  if (!status) return about("ExecSync", status.error());
  const auto inside = parse_allowed(status->out);
  if (!inside) return about(member.pod.name, inside.error());
  ContainerReading reading{member.pod.name, member.pod.resources.qos(), member.container_id, false, {}, *kernel,
                           *inside};
  for (const PlacementRow& row : held) {
    if (row.container_id != member.container_id) continue;
    reading.held = true;
    reading.ledger = row;
  }
  return reading;
}

Result<std::vector<ContainerReading>> PodGroup::read_all() {
  const auto rows = held();
  if (!rows) return rows.error();
  std::vector<ContainerReading> readings;
  for (const Member& member : members_) {
    auto reading = read_one(member, *rows);
    if (!reading) return reading.error();
    readings.push_back(std::move(*reading));
  }
  return readings;
}

Status PodGroup::clear() {
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
