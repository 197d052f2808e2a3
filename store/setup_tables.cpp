#include "store/setup_tables.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "store/digest.hpp"

namespace topolet::store {
namespace {

constexpr const char* kRecordMachine = "record the machine";

std::optional<std::int64_t> number(const std::optional<std::uint32_t>& index) {
  return index ? std::optional<std::int64_t>(*index) : std::nullopt;
}

/// Equal for equal machines.
std::string describe(const TopologyRow& row) {
  std::string text =
      fmt::format("{};{};{}\n", row.allowed.to_string(), row.reserved.to_string(), row.isolated.to_string());
  const auto add_index = [&text](const std::optional<std::uint32_t>& index, char end) {
    text += index ? fmt::format_int(*index).c_str() : "-";
    text += end;
  };
  for (const TopologyRow::Cpu& cpu : row.cpus) {
    add_index(cpu.cpu, ' ');
    add_index(cpu.node, ' ');
    add_index(cpu.core, ' ');
    add_index(cpu.l3, ' ');
    add_index(cpu.package, '\n');
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

/// One of a large machine has thousands.
Status add_cpus(const Database& database, std::int64_t topology, const std::vector<TopologyRow::Cpu>& cpus) {
  auto insert = database.prepare("INSERT INTO topology_cpu VALUES (?1, ?2, ?3, ?4, ?5, ?6)", kRecordMachine);
  if (!insert) return insert.error();
  for (const TopologyRow::Cpu& cpu : cpus) {
    Status written = insert->run(topology, std::int64_t{cpu.cpu}, number(cpu.node), number(cpu.core), number(cpu.l3),
                                 number(cpu.package));
    if (!written) return written;
  }
  return {};
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
  if (Status written = add_cpus(database, topology, row.cpus); !written) return written;
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
