#include "store/statements.hpp"

namespace topolet::store {

// CROSS JOIN keeps the order as written: without statistics SQLite would read all of decided to find the few live ones.
Result<Statements> Statements::prepare(const Database& database) {
  Statements all;
  const struct {
    Statement& into;
    const char* purpose;
    const char* sql;
  } texts[] = {
      {all.begin, "begin a transaction", "BEGIN IMMEDIATE"},
      {all.commit, "commit a transaction", "COMMIT"},
      {all.roll_back, "roll a transaction back", "ROLLBACK"},
      {all.begin_savepoint, "begin a savepoint", "SAVEPOINT step"},
      {all.release_savepoint, "release a savepoint", "RELEASE step"},
      {all.roll_back_savepoint, "roll back to a savepoint", "ROLLBACK TO step"},

      {all.add_boot, "record this boot", "INSERT OR IGNORE INTO boot (boot_id, first_seen_ms) VALUES (?1, ?2)"},
      {all.set_generation, "record the generation", "UPDATE boot SET generation = max(generation, ?2) WHERE boot = ?1"},
      {all.find_boot, "find this boot", "SELECT boot FROM boot WHERE boot_id = ?1"},
      {all.find_other_boots, "find the allocations from before the reboot",
       "SELECT decision FROM allocation_row CROSS JOIN decided USING (decision) WHERE boot <> ?1"},
      {all.forget_other_pods, "forget the pods from before the reboot", "DELETE FROM pod WHERE boot <> ?1"},

      {all.add_decided, "add a decision",
       "INSERT INTO decided (decision, boot, at_ms, generation, event, holds, supersedes, pod_uid, pod_namespace, "
       "pod_name, container, attempt, sandbox_id, container_id, runtime_handler, qos, cpu_request_milli, "
       "cpu_limit_milli, memory_request_bytes, memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, "
       "nodes, reason, verdicts, memory_request_estimated, hugepages, settings, kubelet_mems, reason_code, caused_by, "
       "setup, phases, conflict, devices, cpu_request_certainty, oom_score_adj, tags, memory_cost) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
       "?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {all.add_held_cpu, "add the CPUs of a decision",
       "INSERT INTO held_cpu (decision, kind, first, last) VALUES (?1, ?2, ?3, ?4)"},
      {all.add_outcome, "add the outcome of a decision",
       "INSERT INTO outcome (decision, at_ms, state, container_id, code, message, phases) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      {all.add_ended, "end a decision",
       "INSERT INTO ended (decision, at_ms, generation, cause) VALUES (?1, ?2, ?3, ?4)"},
      {all.find_decided_time, "find the time of a decision", "SELECT at_ms FROM decided WHERE decision = ?1"},
      {all.add_lifetime, "record the lifetime of a decision",
       "INSERT INTO lifetime (span, until_ms, decision, from_ms) VALUES (?1, ?2, ?3, ?4)"},
      {all.add_repeat, "count a repeated denial",
       "INSERT INTO repeat (decision, count, last_ms) VALUES (?1, 1, ?2) "
       "ON CONFLICT DO UPDATE SET count = count + 1, last_ms = excluded.last_ms"},
      {all.add_pool, "record the pool",
       "INSERT INTO pool_version (generation, boot, at_ms, cpus, free_reserved, free_isolated, caused_by, cause) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"},

      {all.add_load_sample, "record what was measured",
       "INSERT INTO load_sample (at_ms, load) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM load_sample WHERE sample = "
       "(SELECT max(sample) FROM load_sample) AND load = ?2)"},
      {all.add_decided_load, "record by what a decision was made",
       "INSERT INTO decided_load (decision, sample) SELECT ?1, max(sample) FROM load_sample"},

      {all.set_whole_pool, "record the CPUs of the whole pool",
       "INSERT OR REPLACE INTO whole_pool (id, cpus, vacating, generation) VALUES (1, ?1, ?2, ?3)"},
      {all.remove_allocation, "remove an allocation", "DELETE FROM allocation_row WHERE decision = ?1"},
      {all.remove_pod, "forget a pod", "DELETE FROM pod WHERE sandbox_id = ?1"},
      {all.remove_capacity, "forget a reported capacity", "DELETE FROM reported_capacity WHERE node = ?1"},
      {all.remove_recent_sizes, "forget the sizes of containers", "DELETE FROM recent_size"},
      {all.add_recent_size, "record a size of containers",
       "INSERT INTO recent_size (cpus, counted_ms) VALUES (?1, ?2)"},

      {all.find_pool, "read the pool", "SELECT cpus FROM pool_version WHERE generation = ?1"},
      {all.find_allocations, "read the allocations", "SELECT * FROM allocation ORDER BY decision"},
      {all.find_pods, "read the pods", "SELECT * FROM pod ORDER BY sandbox_id"},
      {all.find_capacities, "read the reported capacities", "SELECT * FROM reported_capacity ORDER BY node"},
      {all.find_recent_sizes, "read the sizes of containers", "SELECT cpus, counted_ms FROM recent_size ORDER BY cpus"},
      {all.find_last_generation, "read the last generation", "SELECT coalesce(max(generation), 0) FROM boot"},
      {all.find_last_decision, "read the last decision",
       "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'decided'), 0)"},
      {all.find_last_setup, "read the last setup", "SELECT coalesce(max(setup), 0) FROM setup"},
  };
  for (const auto& text : texts) {
    auto statement = database.prepare(text.sql, text.purpose);
    if (!statement) return statement.error();
    text.into = *std::move(statement);
  }
  return all;
}

}  // namespace topolet::store
