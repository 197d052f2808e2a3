#include "store/setup_tables.hpp"

#include <fmt/format.h>

#include <string>

#include "store/digest.hpp"

namespace topolet::store {
namespace {

constexpr const char* kRecordMachine = "record the machine";

std::optional<std::int64_t> number(const std::optional<std::uint32_t>& index) {
  return index ? std::optional<std::int64_t>(*index) : std::nullopt;
}

std::string text_of(const std::optional<std::uint32_t>& index) { return index ? std::to_string(*index) : "-"; }

/// Equal for equal machines.
std::string describe(const TopologyRow& row) {
  std::string text =
      fmt::format("{};{};{}\n", row.allowed.to_string(), row.reserved.to_string(), row.isolated.to_string());
  for (const TopologyRow::Cpu& cpu : row.cpus) {
    text += fmt::format("{} {} {} {} {}\n", cpu.cpu, text_of(cpu.node), text_of(cpu.core), text_of(cpu.l3),
                        text_of(cpu.package));
  }
  for (const TopologyRow::Node& node : row.nodes) {
    text += fmt::format("{} {} {} {}\n", node.node, node.cpus.to_string(), node.memory_bytes, node.memory_only);
  }
  for (const TopologyRow::Device& device : row.devices) {
    text += fmt::format("{} {} {} {}\n", device.name, device.address, device.kind, device.nodes.to_string());
  }
  return text;
}

template <class... Values>
Status run(const Database& database, const char* sql, const char* purpose, const Values&... values) {
  auto statement = database.prepare(sql, purpose);
  if (!statement) return statement.error();
  return statement->run(values...);
}

}  // namespace

Status add_topology(const Database& database, std::int64_t boot, const TopologyRow& row) {
  const std::string digest = digest_of(describe(row));
  auto last = database.prepare("SELECT digest FROM topology WHERE boot = ?1 ORDER BY topology DESC LIMIT 1",
                               "read the machine");
  if (!last) return last.error();
  const auto known = last->first_text(boot);
  if (!known) return known.error();
  if (*known && **known == digest) return {};
  Status added = run(database,
                     "INSERT INTO topology (boot, at_ms, generation, digest, allowed, reserved, isolated) "
                     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                     kRecordMachine, boot, row.at_ms, row.generation, digest, row.allowed.to_string(),
                     row.reserved.to_string(), row.isolated.to_string());
  if (!added) return added;
  const std::int64_t topology = database.last_row_number();
  for (const TopologyRow::Cpu& cpu : row.cpus) {
    Status written =
        run(database, "INSERT INTO topology_cpu VALUES (?1, ?2, ?3, ?4, ?5, ?6)", kRecordMachine, topology,
            std::int64_t{cpu.cpu}, number(cpu.node), number(cpu.core), number(cpu.l3), number(cpu.package));
    if (!written) return written;
  }
  for (const TopologyRow::Node& node : row.nodes) {
    Status written =
        run(database, "INSERT INTO topology_node VALUES (?1, ?2, ?3, ?4, ?5)", kRecordMachine, topology,
            std::int64_t{node.node}, node.cpus.to_string(), node.memory_bytes, std::int64_t{node.memory_only});
    if (!written) return written;
  }
  // hwloc may list a device twice.
  for (const TopologyRow::Device& device : row.devices) {
    Status written = run(database, "INSERT OR IGNORE INTO topology_device VALUES (?1, ?2, ?3, ?4, ?5)", kRecordMachine,
                         topology, device.name, device.address, device.kind, device.nodes.to_string());
    if (!written) return written;
  }
  return {};
}

Status add_setup(const Database& database, std::int64_t boot, const SetupRow& row) {
  constexpr const char* kPurpose = "record the configuration";
  const std::string digest = digest_of(row.config_text);
  Status added = run(database,
                     "INSERT INTO config (digest, first_ms, text) SELECT ?1, ?2, ?3 "
                     "WHERE NOT EXISTS (SELECT 1 FROM config WHERE digest = ?1)",
                     kPurpose, digest, row.at_ms, row.config_text);
  if (!added) return added;
  return run(database,
             "INSERT INTO setup (setup, boot, at_ms, generation, version, config, plugins) "
             "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM setup WHERE setup = ?1)",
             kPurpose, row.setup, boot, row.at_ms, row.generation, row.version, digest, row.plugins);
}

}  // namespace topolet::store
