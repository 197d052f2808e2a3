#include "core/engine/state/load_json.hpp"

#include <nlohmann/json.hpp>

namespace topolet::engine {
namespace {

using LoadJson = nlohmann::ordered_json;

template <class Value>
void add_load_value(LoadJson& json, const char* name, const std::optional<Value>& value) {
  if (value) json[name] = *value;
}

LoadJson json_of_container(const load::ContainerLoad& load) {
  LoadJson json = {{"cpu_milli", load.cpu_milli}};
  if (load.age.count() != 0) json["age_ms"] = load.age.count();
  add_load_value(json, "psi_some_permille", load.psi_some_permille);
  if (load.is_throttled) json["is_throttled"] = true;
  add_load_value(json, "memory_bytes", load.memory_bytes);
  return json;
}

/// Policies see of a node how much of it is used, and not of a CPU.
void add_use(LoadJson& json, const load::NodeLoad& load) { add_load_value(json, "used_milli", load.used_milli); }
void add_use(LoadJson& /*json*/, const load::CpuLoad& /*load*/) {}

/// Of a node or a CPU; empty where nothing is known.
template <class CpusLoad>
LoadJson json_of_cpus(const CpusLoad& load) {
  LoadJson json = LoadJson::object();
  add_load_value(json, "effective_milli", load.effective_milli);
  add_use(json, load);
  if (!json.empty() && load.age.count() != 0) json["age_ms"] = load.age.count();
  return json;
}

template <class Loads>
void add_load_of_cpus(LoadJson& json, const char* name, const Loads& loads) {
  for (const auto& [os_index, load] : loads) {
    LoadJson known = json_of_cpus(load);
    if (!known.empty()) json[name][std::to_string(os_index)] = std::move(known);
  }
}

}  // namespace

std::string to_json(const load::Load& load) {
  LoadJson json = LoadJson::object();
  for (const auto& [id, container] : load.containers) json["containers"][id] = json_of_container(container);
  add_load_of_cpus(json, "nodes", load.nodes);
  add_load_of_cpus(json, "cpus", load.cpus);
  return json.dump(-1, ' ', false, LoadJson::error_handler_t::replace);
}

}  // namespace topolet::engine
