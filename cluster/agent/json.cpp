#include "cluster/agent/json.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace topolet::agent {

using nlohmann::json;
namespace v1 = watch::v1;

static json to_json(const v1::Opinion& opinion);
static json to_json(const v1::Candidate& candidate);
static json to_json(const v1::Plugin& plugin);
static json to_json(const v1::Device& device);
static json to_json(const v1::Node& node);
static json to_json(const v1::Capacity& capacity);
static json to_json(const v1::Illness& illness);

template <class Messages>
static json list_of(const Messages& messages) {
  json list = json::array();
  for (const auto& message : messages) list.push_back(to_json(message));
  return list;
}

static json to_json(const v1::Opinion& opinion) {
  return {
      {"policy", opinion.policy()}, {"kind", opinion.kind()}, {"score", opinion.score()}, {"reason", opinion.reason()}};
}

static json to_json(const v1::Candidate& candidate) {
  return {{"nodes", candidate.nodes()},
          {"score", candidate.score()},
          {"rejected", candidate.rejected()},
          {"opinions", list_of(candidate.opinions())}};
}

static json to_json(const v1::Cpus& cpus) {
  return {{"allowed", cpus.allowed()},
          {"reserved", cpus.reserved()},
          {"isolated", cpus.isolated()},
          {"all_isolated", cpus.all_isolated()},
          {"pool", cpus.pool()}};
}

static json to_json(const v1::Plugin& plugin) {
  json options = json::object();
  for (const auto& [name, value] : plugin.options()) options[name] = value;
  return {{"id", plugin.id()},
          {"version", plugin.version()},
          {"required", plugin.required()},
          {"options", std::move(options)}};
}

static json to_json(const v1::Device& device) {
  return {{"name", device.name()},
          {"address", device.address()},
          {"kind", device.kind()},
          {"nodes", device.nodes()},
          {"cpus", device.cpus()}};
}

static json to_json(const v1::Node& node) {
  json huge_pages = json::object();
  for (const auto& [bytes, count] : node.huge_pages()) huge_pages[std::to_string(bytes)] = count;
  return {{"os_index", node.os_index()},         {"cpus", node.cpus()},
          {"memory_only", node.memory_only()},   {"memory_bytes", node.memory_bytes()},
          {"huge_pages", std::move(huge_pages)}, {"subtype", node.subtype()}};
}

static json to_json(const v1::Machine& machine) {
  return {{"generation", machine.generation()},
          {"packages", machine.packages()},
          {"l3s", machine.l3s()},
          {"cores", machine.cores()},
          {"nodes", list_of(machine.nodes())},
          {"distances", machine.distances()},
          {"distances_known", machine.distances_known()},
          {"devices", list_of(machine.devices())},
          {"online", machine.online()},
          {"present", machine.present()}};
}

static json to_json(const v1::Capacity& capacity) {
  return {{"node", capacity.node()},
          {"effective_cpu_milli", capacity.effective_cpu_milli()},
          {"until_ms", capacity.until_ms()},
          {"source", capacity.source()},
          {"below_since_ms", capacity.below_since_ms()},
          {"lowers", capacity.lowers()}};
}

static json to_json(const v1::Illness& illness) {
  return {{"code", illness.code()},         {"severity", illness.severity()}, {"subject", illness.subject()},
          {"sentence", illness.sentence()}, {"since_ms", illness.since_ms()}, {"count", illness.count()}};
}

template <class Measured>
static json measured_json(const Measured& measured) {
  json told = json::object();
  if (measured.has_effective_milli()) told["effective_milli"] = measured.effective_milli();
  if (measured.has_used_milli()) told["used_milli"] = measured.used_milli();
  return told;
}

json to_json(const v1::Load& load) {
  json told = {{"is_settled", load.is_settled()}, {"nodes", json::object()}, {"cpus", json::object()}};
  for (const v1::NodeLoad& node : load.nodes()) told["nodes"][std::to_string(node.node())] = measured_json(node);
  for (const v1::CpuLoad& cpu : load.cpus()) told["cpus"][std::to_string(cpu.cpu())] = measured_json(cpu);
  return told;
}

json to_json(const v1::ContainerKey& key) {
  return {
      {"pod_uid", key.pod_uid()}, {"name", key.name()}, {"attempt", key.attempt()}, {"sandbox_id", key.sandbox_id()}};
}

json to_json(const v1::Container& container) {
  json huge_pages = json::object();
  for (const auto& [page, bytes] : container.hugepage_limit_bytes()) huge_pages[page] = bytes;
  return {{"key", to_json(container.key())},
          {"pod_name", container.pod_name()},
          {"pod_namespace", container.pod_namespace()},
          {"container_id", container.container_id()},
          {"qos", container.qos()},
          {"phase", container.phase()},
          {"phase_since_ms", container.phase_since_ms()},
          {"mode", container.mode()},
          {"cpus", container.cpus()},
          {"withheld", container.withheld()},
          {"mems", container.mems()},
          {"nodes", container.nodes()},
          {"conflict", container.conflict()},
          {"squeeze", container.squeeze()},
          {"cpu_request_milli", container.cpu_request_milli()},
          {"cpu_request_certainty", container.cpu_request_certainty()},
          {"cpu_limit_milli", container.cpu_limit_milli()},
          {"memory_request_bytes", container.memory_request_bytes()},
          {"memory_request_estimated", container.memory_request_estimated()},
          {"memory_limit_bytes", container.memory_limit_bytes()},
          {"hugepage_limit_bytes", std::move(huge_pages)},
          {"used_devices", container.used_devices()},
          {"generation", container.generation()},
          {"decision", container.decision()},
          {"reason", container.reason()},
          {"seen_on", container.seen_on()},
          {"overlapped", container.overlapped()},
          {"stuck_on", container.stuck_on()},
          {"overruled_since_ms", container.overruled_since_ms()}};
}

json to_json(const v1::Event& event) {
  json told = {{"event", event.event()},
               {"decision", event.decision()},
               {"pod_name", event.pod_name()},
               {"pod_namespace", event.pod_namespace()},
               {"reason", event.reason()},
               {"reason_code", event.reason_code()},
               {"nodes", event.nodes()},
               {"qos", event.qos()},
               {"candidates", list_of(event.candidates())}};
  if (event.has_key()) told["key"] = to_json(event.key());
  return told;
}

json to_json(const v1::Snapshot& snapshot) {
  json told = {{"instance", snapshot.instance()},
               {"version", snapshot.version()},
               {"generation", snapshot.generation()},
               {"reconciled", snapshot.reconciled()},
               {"machine", to_json(snapshot.machine())},
               {"cpus", to_json(snapshot.cpus())},
               {"containers", list_of(snapshot.containers())},
               {"plugins", list_of(snapshot.plugins())},
               {"capacities", list_of(snapshot.capacities())},
               {"host", snapshot.host()}};
  if (snapshot.has_illnesses()) told["illnesses"] = list_of(snapshot.illnesses().illnesses());
  return told;
}

json to_json(const v1::Delta& delta) {
  json told = {{"generation", delta.generation()}, {"time_ms", delta.time_ms()}};
  if (!delta.changed().empty()) told["changed"] = list_of(delta.changed());
  if (!delta.ended().empty()) told["ended"] = list_of(delta.ended());
  if (!delta.events().empty()) told["events"] = list_of(delta.events());
  if (delta.has_cpus()) told["cpus"] = to_json(delta.cpus());
  if (delta.has_machine()) told["machine"] = to_json(delta.machine());
  if (delta.has_reconciled()) told["reconciled"] = delta.reconciled();
  if (delta.has_plugins()) told["plugins"] = list_of(delta.plugins().plugins());
  if (!delta.capacities().empty()) told["capacities"] = list_of(delta.capacities());
  if (!delta.capacities_ended().empty()) told["capacities_ended"] = delta.capacities_ended();
  if (delta.has_illnesses()) told["illnesses"] = list_of(delta.illnesses().illnesses());
  return told;
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace topolet::agent
