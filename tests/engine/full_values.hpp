// Values in which every field differs from its default. All fields are named by structured bindings: one that is added
// to a struct breaks the build of this file, and is to be set here, stored and read back.
#pragma once

#include "core/engine/state/allocation.hpp"

namespace topolet::engine {

inline placement::ContainerKey full_key() {
  placement::ContainerKey key;
  auto& [pod_uid, name, attempt, sandbox_id] = key;
  pod_uid = "uid";
  name = "web";
  attempt = 3;
  sandbox_id = "sandbox";
  return key;
}

inline placement::Demand full_demand(std::int64_t unit) {
  placement::Demand demand;
  auto& [cpu_request, cpu_limit, memory_request, estimated, memory_limit, hugepages, certainty, oom_score_adj, period] =
      demand;
  oom_score_adj = 625;
  cpu_request = unit;
  certainty = placement::Certainty::kEstimated;
  cpu_limit = 2 * unit;
  period = 7 * unit;
  memory_request = 3 * unit;
  estimated = true;
  memory_limit = 4 * unit;
  hugepages = {{"1GB", 5 * unit}, {"2MB", 6 * unit}};
  return demand;
}

/// With an environment, which is the one thing that is never kept.
inline placement::Workload full_workload() {
  placement::Workload workload;
  auto& [key, pod_name, pod_namespace, runtime_handler, qos, demand, kubelet_cpus, kubelet_mems, kubelet_unified,
         devices, cdi_devices, env, pod_labels, pod_annotations, annotations, settings, pod_demand, pod_nodes,
         used_devices, tags, made_by_kubelet] = workload;
  key = full_key();
  pod_name = "shop-0";
  pod_namespace = "default";
  runtime_handler = "runc";
  qos = placement::Qos::kGuaranteed;
  demand = full_demand(1000);
  kubelet_cpus = CpuSet{1, 5};
  kubelet_mems = NodeSet{1};
  kubelet_unified = {{"memory.min", "4096"}};
  devices = {"/dev/a", "/dev/b"};
  cdi_devices = {"vendor.com/gpu=0"};
  env = {{"TOKEN", "secret"}};
  pod_labels = {{"app", "shop"}};
  pod_annotations = {{"note", "said \"so\"\n"}};
  annotations = {{"container", "ü"}};
  settings = {{"cpus", "exclusive"}};
  pod_demand = full_demand(7000);
  pod_nodes = NodeSet{0, 2};
  used_devices = {"0000:65:00.0", "/dev/vacc1"};
  tags = {{"pools/pool", "small"}};
  made_by_kubelet = false;  // never stored
  return workload;
}

inline placement::Placement full_placement(std::uint32_t first) {
  placement::Placement placement;
  auto& [mode, cpus, withheld, mems, added] = placement;
  mode = placement::Mode::kExclusive;
  cpus = CpuSet{first, first + 70};
  withheld = CpuSet{first + 1};
  mems = NodeSet{first};
  auto& [env, annotations, tags, unified, rdt_class, memory_policy, scheduler, io_priority] = added;
  tags = {{"pools/pool", "small"}};
  unified = {{"memory.high", "1048576"}};
  rdt_class = "gold";
  auto& [mode_of_memory, nodes, static_nodes, relative_nodes, numa_balancing] = memory_policy.emplace();
  mode_of_memory = placement::MemoryMode::kPreferredMany;
  nodes = NodeSet{first};
  static_nodes = true;
  relative_nodes = true;
  numa_balancing = true;
  auto& [scheduler_class, nice] = scheduler.emplace();
  scheduler_class = placement::SchedulerClass::kBatch;
  nice = -4;
  auto& [io_class, priority] = io_priority.emplace();
  io_class = placement::IoClass::kRealtime;
  priority = 3;
  env = {{"CUDA_VISIBLE_DEVICES", "0"}};
  annotations = {{"placed", "yes"}};
  return placement;
}

inline Preferred full_preferred() {
  Preferred preferred;
  auto& [placement, within, nodes, waits_for_all, is_due] = preferred;
  placement = full_placement(20);
  placement.added = {};  // counts where a container is made, which it was long ago
  within = CpuSet::range(20, 23);
  nodes = NodeSet{3};
  waits_for_all = true;
  is_due = true;
  return preferred;
}

inline MovedFrom full_moved_from() {
  MovedFrom from;
  auto& [placement, mems_to_keep, within, nodes, reason, preferred, arrived_cpus, evaluated_cpus, restricted, squeeze,
         unified, tags, demand, newcomer] = from;
  placement = full_placement(30);
  placement.added = {};  // as of what it goes back to
  mems_to_keep = NodeSet{2};
  within = CpuSet::range(30, 33);
  nodes = NodeSet{4};
  reason = "fitted";
  preferred = full_preferred();
  arrived_cpus = CpuSet{34};
  evaluated_cpus = CpuSet{35};
  restricted = true;
  squeeze = Squeeze::kPlaced;
  unified = {{"memory.high", "4096"}};
  tags = {{"pools/pool", "large"}};
  demand = full_demand(3000);
  newcomer = full_key();
  return from;
}

/// `decision` is what a store numbered it.
inline Allocation full_allocation(std::int64_t number) {
  Allocation allocation;
  auto& [workload, placement, within, vacating, vacating_alone, conflict, phase, phase_since, doubt_since, stopping,
         container_id, generation, decision, reason, preferred, arrived_cpus, evaluated_cpus, restricted, nodes,
         squeeze, seen_on, overlapped, overruled, hand, stuck, quota, unified, adopted, shares_pool_row, mems_to_keep,
         last_move, widening, moved_from, narrowed_to, memory_high] = allocation;
  workload = full_workload();
  placement = full_placement(4);
  within = CpuSet::range(4, 9);
  vacating = CpuSet{10, 11};
  vacating_alone = CpuSet{11};
  conflict = true;
  phase = Phase::kCrashed;
  phase_since = std::chrono::milliseconds(1700000000001);
  doubt_since = std::chrono::milliseconds(1700000000002);
  stopping = true;
  container_id = "c1";
  generation = 42;
  decision = number;
  reason = "fits";
  preferred = full_preferred();
  arrived_cpus = CpuSet{12};
  evaluated_cpus = CpuSet{13};
  restricted = true;
  nodes = NodeSet{5};
  squeeze = Squeeze::kLeftToKernel;
  seen_on = CpuSet{14};
  overlapped = CpuSet{15};
  auto& [since, ours_since, put_on, plugin] = overruled.emplace();
  since = std::chrono::milliseconds(1700000000003);
  ours_since = std::chrono::milliseconds(1700000000004);
  put_on = CpuSet{16};
  plugin = "10-other";
  auto& [repaired_at, repairs] = hand.emplace();
  repaired_at = std::chrono::milliseconds(1700000000005);
  repairs = 2;
  auto& [stuck_on, why, stuck_since, next_trial, trials] = stuck.emplace();
  stuck_on = CpuSet{17};
  why = "busy";
  stuck_since = std::chrono::milliseconds(1700000000006);
  next_trial = std::chrono::milliseconds(1700000000007);
  trials = 3;
  quota = QuotaState::kGivenBack;
  unified = {{"memory.high", "1048576"}};
  adopted = true;
  shares_pool_row = true;
  mems_to_keep = NodeSet{1};
  auto& [moved_at, cause] = last_move.emplace();
  moved_at = std::chrono::milliseconds(1700000000008);
  cause = MoveCause::kRoom;
  auto& [spare, widened_at, use_permille, not_before] = widening.emplace();
  spare = CpuSet{18};
  widened_at = std::chrono::milliseconds(1700000000009);
  use_permille = 950;
  not_before = std::chrono::milliseconds(1700000000010);
  moved_from = full_moved_from();
  narrowed_to = CpuSet{19};
  memory_high = 1073741824;
  return allocation;
}

inline Pod full_pod() {
  Pod pod;
  auto& [sandbox, nodes, former, denied, waiting, warned, made, confined, dropped_quota] = pod;
  made = {"init", "main"};
  confined = true;
  auto& [quota, period] = dropped_quota.emplace();
  quota = 250000;
  period = 100000;
  auto& [id, pod_uid, pod_namespace, pod_name, runtime_handler, ready, annotations] = sandbox;
  id = "sandbox";
  pod_uid = "uid";
  pod_namespace = "default";
  pod_name = "shop-0";
  runtime_handler = "runc";
  ready = false;
  annotations = {{"note", "pod"}};
  nodes = NodeSet{1};
  auto& [cpus, withheld] = former["web"];
  cpus = CpuSet{4, 5};
  withheld = CpuSet{6};
  auto& [attempt, reason, decision] = denied["db"];
  attempt = 2;
  reason = "full";
  decision = 9;
  warned = {"unknown annotation"};
  auto& [waits_for, since] = waiting["late"];
  waits_for = 3;
  since = std::chrono::milliseconds(7);
  return pod;
}

}  // namespace topolet::engine
