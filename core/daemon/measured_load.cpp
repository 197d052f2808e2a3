// What is measured, for the operator, for those who watch and for metrics.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/daemon/daemon.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/load/capacity_reports.hpp"

namespace topolet::daemon {
namespace {

/// The time that somebody who asks waits for the engine.
constexpr std::chrono::seconds kLoadPatience{5};

control::v1::ContainerLoad told(const load::ContainerLoad& measured) {
  control::v1::ContainerLoad told;
  told.set_age_ms(measured.age.count());
  told.set_cpu_milli(measured.cpu_milli);
  if (measured.psi_some_permille) told.set_psi_some_permille(*measured.psi_some_permille);
  told.set_is_throttled(measured.is_throttled);
  if (measured.memory_bytes) told.set_memory_bytes(*measured.memory_bytes);
  if (measured.memory_psi_permille) told.set_memory_psi_permille(*measured.memory_psi_permille);
  if (measured.io_psi_permille) told.set_io_psi_permille(*measured.io_psi_permille);
  if (measured.memory_high_per_minute) told.set_memory_high_per_minute(*measured.memory_high_per_minute);
  return told;
}

watch::v1::Load message_of(const load::Load& load) {
  watch::v1::Load message;
  message.set_is_settled(load.is_settled());
  for (const auto& [os_index, measured] : load.nodes) {
    watch::v1::NodeLoad& node = *message.add_nodes();
    node.set_node(os_index);
    if (measured.effective_milli) node.set_effective_milli(*measured.effective_milli);
    if (measured.used_milli) node.set_used_milli(*measured.used_milli);
  }
  for (const auto& [os_index, measured] : load.cpus) {
    watch::v1::CpuLoad& cpu = *message.add_cpus();
    cpu.set_cpu(os_index);
    if (measured.effective_milli) cpu.set_effective_milli(*measured.effective_milli);
    if (measured.used_milli) cpu.set_used_milli(*measured.used_milli);
  }
  for (const auto& [id, measured] : load.containers) {
    watch::v1::ContainerLoad& container = *message.add_containers();
    container.set_container_id(id);
    container.set_cpu_milli(measured.cpu_milli);
    if (measured.psi_some_permille) container.set_psi_some_permille(*measured.psi_some_permille);
    container.set_is_throttled(measured.is_throttled);
    if (measured.memory_bytes) container.set_memory_bytes(*measured.memory_bytes);
    container.set_age_ms(measured.age.count());
  }
  return message;
}

/// By name, as the ledger has them.
void tell_containers(const engine::Ledger& ledger, const load::Load& load, control::v1::LoadResponse& response) {
  for (const auto& [key, allocation] : ledger.allocations()) {
    const auto measured = load.containers.find(allocation.container_id);
    if (measured == load.containers.end()) continue;
    control::v1::ContainerLoad& container = *response.add_containers();
    container = told(measured->second);
    container.set_container(display_name(allocation.workload));
    container.set_id(allocation.container_id);
    container.set_mode(std::string(seen_mode(allocation)));
    container.set_cpus(allocation.placement.cpus.to_string());
    container.set_cpu_request_milli(allocation.workload.demand.cpu_request_milli);
  }
}

void tell_nodes(const engine::Ledger& ledger, const load::Load& load, control::v1::LoadResponse& response) {
  for (const topology::Node& node : ledger.topology()->nodes) {
    if (node.memory_only) continue;
    control::v1::NodeLoad& told = *response.add_nodes();
    told.set_node(node.os_index);
    told.set_nominal_milli(engine::nominal_milli(ledger.topology().get(), node.os_index));
    told.set_source("unknown");
    const auto measured = load.nodes.find(node.os_index);
    if (measured != load.nodes.end() && measured->second.used_milli) told.set_used_milli(*measured->second.used_milli);
    if (measured != load.nodes.end() && measured->second.effective_milli) {
      told.set_effective_milli(*measured->second.effective_milli);
      told.set_source(engine::kMeasuredSource);
    }
    const auto reported = ledger.reported_capacities().find(node.os_index);
    if (reported == ledger.reported_capacities().end() || is_measured(reported->second)) continue;
    told.set_effective_milli(reported->second.milli);
    told.set_source(reported->second.source);
  }
}

void tell_cpus(const load::Load& load, control::v1::LoadResponse& response) {
  for (const auto& [os_index, measured] : load.cpus) {
    control::v1::CpuLoad& cpu = *response.add_cpus();
    cpu.set_cpu(os_index);
    if (measured.effective_milli) cpu.set_effective_milli(*measured.effective_milli);
    if (measured.used_milli) cpu.set_used_milli(*measured.used_milli);
  }
}

}  // namespace

void Daemon::make_sampler(const config::DaemonOptions& options) {
  const auto cgroups = std::make_shared<const engine::ProcessCgroups>();
  sampler_ = std::make_unique<load::SamplerThread>(load::SamplerThread::Deps{
      .sampler = {.find_cgroup =
                      [cgroups](const load::RunningContainer& container) {
                        return cgroups->load_directories(container.process, container.id);
                      }},
      .sampling = load::sampling_named(options.load),
      .ask_for_subjects =
          [this] {
            engine_->read_load_subjects([this](load::Subjects subjects) { sampler_->tell(std::move(subjects)); });
          },
      .is_read = [this] { return plugins_->reads_load() || (feed_ && feed_->wants_load()); },
      .on_sample =
          [this, reports = load::CapacityReports(), shows = false](const load::Sample& sample,
                                                                   const load::Subjects& subjects) mutable {
            for (const load::CapacityReports::Report& report : reports.due(sample, subjects.nodes))
              engine_->note_measured_capacity(report.node, report.milli);
            // Every second one.
            shows = !shows;
            if (shows && feed_ && feed_->wants_load()) feed_->set_load(message_of(sample.load));
          }});
}

void Daemon::tell_load_state(control::v1::LoadState& told) const {
  const load::SamplerState state = sampler_->state();
  told.set_sampling(std::string(to_string(state.sampling)));
  told.set_is_measuring(state.is_measuring);
  if (!state.newest) return;
  told.set_measured_for_ms(state.newest->measured_for.count());
  told.set_age_ms(state.age.count());
  told.set_error(state.newest->error);
  told.set_capacity_source(state.newest->tells_steal      ? engine::kMeasuredSource
                           : state.newest->has_hypervisor ? "unknown"
                                                          : "no-hypervisor");
}

Status Daemon::report_load(const control::v1::LoadRequest& request, control::v1::LoadResponse& response) {
  if (!request.only_known()) sampler_->note_reader();
  tell_load_state(*response.mutable_state());
  const std::shared_ptr<const load::Load> load = sampler_->load();
  if (!load) return {};
  const auto told = engine_->ask(
      [load](const engine::Ledger& ledger) {
        control::v1::LoadResponse all;
        tell_nodes(ledger, *load, all);
        tell_containers(ledger, *load, all);
        tell_cpus(*load, all);
        return all;
      },
      kLoadPatience);
  if (!told) return told.error();
  response.MergeFrom(*told);
  return {};
}

std::optional<metrics::LoadFigures> Daemon::load_figures() const {
  const load::SamplerState state = sampler_->state();
  if (!state.newest) return std::nullopt;
  metrics::LoadFigures figures{.age_seconds = std::chrono::duration<double>(state.age).count()};
  if (state.age > load::kLongestAge) return figures;
  for (const auto& [node, load] : state.newest->load.nodes) {
    if (load.used_milli) figures.used_cpus[std::to_string(node)] = static_cast<double>(*load.used_milli) / 1000;
    if (load.effective_milli)
      figures.effective_cpus[std::to_string(node)] = static_cast<double>(*load.effective_milli) / 1000;
  }
  for (const auto& [id, load] : state.newest->load.containers) {
    if (!load.memory_high_per_minute || load.age > load::kLongestAge) continue;
    figures.held_back_by_memory_high =
        figures.held_back_by_memory_high.value_or(0) + (*load.memory_high_per_minute > 0);
  }
  return figures;
}

}  // namespace topolet::daemon
