#include "tests/moves/move_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace topolet::moves {
namespace {

using simulate::Operation;
using simulate::OperationKind;
using simulate::OperationResult;

constexpr std::chrono::minutes kLeftAlone{10};
constexpr std::size_t kMostForOne = 1;
constexpr std::size_t kMostForDevices = 3;
constexpr const char* kMoveAnnotation = "topolet.io/move";

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What moved it, in one word.
std::string kind_of(const simulate::MovedContainer& moved, bool was_exclusive, const char* if_untold) {
  if (moved.reason.empty()) return "pool";
  if (moved.reason_code.empty() && was_exclusive) return if_untold;
  // The last word of a move that is over, where the code of the move itself is not told.
  if (was_exclusive && is_one_of(moved.reason_code, {"left-cpus", "memory-moved"})) return if_untold;
  if (moved.reason_code == "healed") return "heal";
  if (moved.reason_code == "crowded") return "crowd";
  // Whoever shares has to leave CPUs that another one gets alone; that is nobody's choice.
  if (moved.reason_code == "room" || (moved.reason_code == "made-room" && was_exclusive)) return "room";
  return moved.reason_code.empty() ? "re-placed" : moved.reason_code;
}

bool is_choice(const std::string& kind) { return kind == "heal" || kind == "room"; }

/// These count as moved for all who choose.
bool is_remembered(const std::string& kind) { return is_choice(kind) || kind == "crowd"; }

/// Amounts as the configuration has them: "256Mi", "1Gi", or bytes.
std::int64_t bytes_of(const std::string& amount) {
  std::size_t end = 0;
  const std::int64_t number = std::stoll(amount, &end);
  const std::string unit = amount.substr(end);
  if (unit == "Ki") return number << 10;
  if (unit == "Mi") return number << 20;
  if (unit == "Gi") return number << 30;
  return number;
}

bool is_admission(const Operation& operation) {
  return operation.kind == OperationKind::kCreate || operation.kind == OperationKind::kUpdate;
}

/// The CPUs of all cores that have one of `cpus`.
CpuSet whole_cores(const topology::Topology& topology, const CpuSet& cpus) {
  CpuSet cores;
  for (const CpuSet& core : topology.cores) {
    if (core.intersects(cpus)) cores |= core;
  }
  return cores;
}

}  // namespace

MoveRules MoveRules::from_flags(const std::vector<std::string>& flags) {
  MoveRules rules;
  for (const std::string& flag : flags) {
    const std::size_t begin = flag.rfind("--", 0) == 0 ? 2 : 0;
    const std::size_t equals = flag.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = flag.substr(begin, equals - begin);
    const std::string value = flag.substr(equals + 1);
    if (key == "placement.heal") rules.heal = value;
    if (key == "placement.make-room") rules.make_room = value;
    if (key == "placement.move-memory") rules.move_memory_bytes = bytes_of(value);
    if (key == "placement.memory-migrate") rules.memory_migrate = value == "true";
    if (key == "numa.scope") rules.keeps_pods_together = value == "pod";
    if (key == "numa.full-pcpus-only") rules.full_cores = value == "true";
  }
  return rules;
}

PlaceQuality quality_of(const topology::Topology& topology, const CpuSet& cpus, const NodeSet& device_nodes) {
  const NodeSet nodes = topology.nodes_of(cpus);
  PlaceQuality quality{nodes.size(), topology.total_distance(nodes), 0, 0};
  if (!device_nodes.empty()) {
    CpuSet beside;
    for (const std::uint32_t node : device_nodes) {
      if (const topology::Node* found = topology.node(node)) beside |= found->cpus;
    }
    quality.remote_cpus = (cpus - beside).size();
  }
  for (const CpuSet& cache : topology.l3s) quality.caches += cache.intersects(cpus) ? 1 : 0;
  return quality;
}

std::size_t MoveJudge::chosen_moves() const {
  std::size_t sum = 0;
  for (const auto& [kind, count] : moves_) sum += is_choice(kind) ? count : 0;
  return sum;
}

void MoveJudge::fault(const Name& name, const std::string& what) {
  faults_.push_back(fmt::format("operation {}: {}/{}: {}", operation_number_, name.first, name.second, what));
}

void MoveJudge::observe(const Operation& operation, const OperationResult& answer) {
  ++operation_number_;
  began_ = now_;
  if (operation.kind == OperationKind::kClock) now_ += operation.advance;
  note(operation);
  // Where no codes are told, as by an earlier topolet: nothing else moves exclusive CPUs while all CPUs are there.
  const char* const if_untold = has_lost_cpus_ ? "re-placed" : is_admission(operation) ? "room" : "heal";
  Counts counts;
  for (const simulate::MovedContainer& moved : answer.changed) ++counts[note_moved(moved, if_untold)];
  note_own(operation, answer);
  judge_counts(operation, counts);
  judge_overlaps();
}

/// What the operation itself does to machine and pods.
void MoveJudge::note(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kOffline:
      offline_ |= operation.cpus;
      has_lost_cpus_ = true;
      break;
    case OperationKind::kOnline:
      offline_ -= operation.cpus;
      break;
    case OperationKind::kOccupy:
      has_lost_cpus_ = true;
      break;
    case OperationKind::kRestart:
      has_lost_cpus_ = has_lost_cpus_ || operation.loses_database;
      break;
    case OperationKind::kDevice: {
      NodeSet nodes = operation.nodes;
      if (const topology::PciDevice* pci = topology_->pci_device(operation.pci)) nodes |= pci->nodes;
      devices_[operation.path] = nodes;
      break;
    }
    case OperationKind::kRunPod: {
      const auto move = operation.annotations.find(kMoveAnnotation);
      if (move != operation.annotations.end()) move_annotations_[operation.pod] = move->second;
      break;
    }
    case OperationKind::kRemovePod:
      std::erase_if(held_, [&](const auto& entry) { return entry.first.first == operation.pod; });
      break;
    default:
      break;
  }
}

NodeSet MoveJudge::nodes_of_devices(const Operation& create) const {
  NodeSet nodes;
  for (const std::string& path : create.devices) {
    if (const auto device = devices_.find(path); device != devices_.end()) nodes |= device->second;
  }
  return nodes;
}

/// The container that the operation is about.
void MoveJudge::note_own(const Operation& operation, const OperationResult& answer) {
  const Name name{operation.pod, operation.container};
  const bool ends = operation.kind == OperationKind::kExit || operation.kind == OperationKind::kStop;
  if (ends && answer.outcome != "error") held_.erase(name);
  if (operation.kind != OperationKind::kCreate && operation.kind != OperationKind::kUpdate) return;
  if (answer.outcome != "placed" && answer.outcome != "unpinned" && answer.outcome != "ok") return;
  Held& held = held_[name];
  if (operation.kind == OperationKind::kCreate) {
    held = {};
    held.has_devices = !operation.devices.empty() || !operation.cdi_devices.empty();
    held.device_nodes = nodes_of_devices(operation);
    held.is_bound_by_kubelet = !operation.cpuset_cpus.empty();
  }
  const simulate::Resources& asked = operation.resources;
  if (asked.memory_request) held.memory_bytes = asked.memory_request;
  held.is_exclusive = answer.mode == "exclusive";
  held.cpus = answer.cpus;
  held.withheld = answer.withheld;
  held.mems = answer.mems;
  judge_cores(name, held);
}

/// Returns what moved it; empty if its CPUs are the same.
std::string MoveJudge::note_moved(const simulate::MovedContainer& moved, const char* if_untold) {
  const Name name{moved.pod, moved.container};
  const auto known = held_.find(name);
  // What has ended is no neighbour: its CPUs wait for its next attempt.
  if (known == held_.end()) return {};
  const Held before = known->second;
  Held& after = known->second;
  after.is_exclusive = is_one_of(moved.mode, {"exclusive", "overruled", "drifted", "overlapped"});
  after.cpus = moved.cpus;
  after.withheld = moved.withheld;
  after.mems = moved.mems;
  judge_cores(name, after);
  if (before.cpus == after.cpus) return {};
  std::string kind = kind_of(moved, before.is_exclusive, if_untold);
  ++moves_[kind];
  judge_move(name, before, after, kind);
  if (is_remembered(kind)) after.moved = {began_, now_};
  return kind;
}

void MoveJudge::judge_move(const Name& name, const Held& before, const Held& after, const std::string& kind) {
  if (!is_choice(kind)) {
    // A move that the runtime did not carry out is withdrawn.
    if (kind == "reverted") return;
    if (before.is_exclusive && after.is_exclusive && !has_lost_cpus_ && !before.is_bound_by_kubelet) {
      fault(name,
            fmt::format("its exclusive CPUs {} became {}: {}", before.cpus.to_string(), after.cpus.to_string(), kind));
    }
    return;
  }
  judge_pace(name, before.moved);
  judge_permission(name, before, kind);
  judge_place(name, before, after);
  judge_memory(name, before, after);
}

/// It was moved somewhere between two moments, then and now: the shortest time that there can be between both counts.
void MoveJudge::judge_pace(const Name& name, const std::optional<std::pair<Time, Time>>& before) {
  if (!before || now_ - before->first >= kLeftAlone) return;
  fault(name, fmt::format("moved twice within {} s",
                          std::chrono::duration_cast<std::chrono::seconds>(now_ - before->first).count()));
}

void MoveJudge::judge_permission(const Name& name, const Held& before, const std::string& kind) {
  const auto annotation = move_annotations_.find(name.first);
  const std::string word = annotation == move_annotations_.end() ? "" : annotation->second;
  if (word == "never") fault(name, "moved although its pod says never");
  const bool may = word == "allow" || rules_.heal == "all" || (rules_.heal == "shared" && !before.is_exclusive);
  if (!may) fault(name, fmt::format("moved ({}) with placement.heal = {}", kind, rules_.heal));
  if (kind == "room" && rules_.make_room == "off") fault(name, "moved with placement.make-room = off");
  if (kind == "room" && before.has_devices) fault(name, "moved to make room although it has a device");
  if (before.is_bound_by_kubelet) fault(name, "moved although the kubelet has said where it runs");
}

void MoveJudge::judge_place(const Name& name, const Held& before, const Held& after) {
  const PlaceQuality was = quality_of(*topology_, before.cpus, before.device_nodes);
  const PlaceQuality is = quality_of(*topology_, after.cpus, after.device_nodes);
  if (before.is_exclusive && is > was) {
    fault(name, fmt::format("moved from CPUs {} to {}, which is worse: nodes {} -> {}, distance {} -> {}, remote from "
                            "devices {} -> {}, caches {} -> {}",
                            before.cpus.to_string(), after.cpus.to_string(), was.nodes, is.nodes, was.distance,
                            is.distance, was.remote_cpus, is.remote_cpus, was.caches, is.caches));
  }
  if (before.is_exclusive && (!after.is_exclusive || after.cpus.size() != before.cpus.size())) {
    fault(name, fmt::format("moved from {} CPUs of its own to {}", before.cpus.size(), after.cpus.size()));
  }
  if (after.cpus.intersects(offline_)) {
    fault(name, fmt::format("moved to CPUs {}, which are offline", (after.cpus & offline_).to_string()));
  }
  const CpuSet idle = whole_cores(*topology_, before.cpus) - before.cpus;
  const bool was_alone_on_cores = !before.withheld.empty() && idle.is_subset_of(before.withheld);
  if (was_alone_on_cores && !(whole_cores(*topology_, after.cpus) - after.cpus).is_subset_of(after.withheld)) {
    fault(name, "had its cores alone, and has not after the move");
  }
  if (before.is_exclusive &&
      before.cpus.is_subset_of(topology_->isolated) != after.cpus.is_subset_of(topology_->isolated)) {
    fault(name, "moved between isolated CPUs and others");
  }
  // Where it was apart before, it may stay so.
  NodeSet pod = nodes_of_pod(name);
  if (!pod.empty()) pod |= topology_->nodes_of(before.cpus);
  if (rules_.keeps_pods_together && !pod.empty() && !topology_->nodes_of(after.cpus).is_subset_of(pod)) {
    fault(name, fmt::format("moved to nodes {} apart from its pod on {}", topology_->nodes_of(after.cpus).to_string(),
                            pod.to_string()));
  }
}

void MoveJudge::judge_memory(const Name& name, const Held& before, const Held& after) {
  // Towards fewer of its own nodes it may always go.
  if (topology_->nodes_of(after.cpus).is_subset_of(topology_->nodes_of(before.cpus)) || rules_.memory_migrate) return;
  if (!before.mems.empty()) fault(name, "moved to another node although its memory is bound and stays");
  if (before.is_exclusive && before.memory_bytes && *before.memory_bytes >= rules_.move_memory_bytes) {
    fault(name, fmt::format("moved to another node although {} bytes stay behind", *before.memory_bytes));
  }
}

void MoveJudge::judge_counts(const Operation& operation, Counts& counts) {
  const Name name{operation.pod, operation.container};
  const auto own = held_.find(name);
  const bool has_devices =
      !operation.devices.empty() || !operation.cdi_devices.empty() || (own != held_.end() && own->second.has_devices);
  const std::size_t most = !is_admission(operation) ? 0 : has_devices ? kMostForDevices : kMostForOne;
  if (counts["room"] > most) {
    fault(name, fmt::format("{} containers moved to make room for it, {} may", counts["room"], most));
  }
  // A pass that the operator asks for heals as many as it can.
  if (operation.kind == OperationKind::kHeal) return;
  // One a second, and one that was due when the operation began.
  const auto seconds = static_cast<std::size_t>(std::chrono::ceil<std::chrono::seconds>(now_ - began_).count());
  if (counts["heal"] > seconds + 1) {
    fault(name, fmt::format("{} containers healed in {} s", counts["heal"], seconds));
  }
}

void MoveJudge::judge_overlaps() {
  CpuSet alone;
  for (const auto& [name, held] : held_) {
    const CpuSet own = held.is_exclusive ? held.cpus | held.withheld : held.withheld;
    if (own.intersects(alone) && !held.is_bound_by_kubelet) {
      fault(name, fmt::format("has CPUs {}, which another one has alone", (own & alone).to_string()));
    }
    alone |= own;
  }
  for (const auto& [name, held] : held_) {
    if (held.is_exclusive || held.is_bound_by_kubelet) continue;
    const CpuSet taken = held.cpus & alone;
    // On a machine that has lost CPUs, one for which none is left stays where it is.
    const bool has_nothing_else = has_lost_cpus_ && held.cpus.is_subset_of(alone);
    if (!taken.empty() && !has_nothing_else) {
      fault(name, fmt::format("shares CPUs {}, which another one has alone", taken.to_string()));
    }
  }
}

void MoveJudge::judge_cores(const Name& name, const Held& held) {
  if (!rules_.full_cores || !held.is_exclusive || has_lost_cpus_) return;
  const CpuSet part = whole_cores(*topology_, held.cpus) - held.cpus - held.withheld;
  if (!part.empty())
    fault(name, fmt::format("has CPUs {} without {} of the same cores", held.cpus.to_string(), part.to_string()));
}

NodeSet MoveJudge::nodes_of_pod(const Name& but) const {
  NodeSet nodes;
  for (const auto& [name, held] : held_) {
    if (name.first == but.first && name != but) nodes |= topology_->nodes_of(held.cpus);
  }
  return nodes;
}

}  // namespace topolet::moves
