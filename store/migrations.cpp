// The steps from version 10 of the schema to the newest. A step that was released is never changed: what is to be
// different is a step of its own, of the next version, with a test.
#include <fmt/format.h>

#include "store/schema.hpp"
#include "store/schema_v10.hpp"

namespace topolet::store {
namespace {

/// Adds where the kernel was seen to have a container, and who is overruled.
constexpr const char* kColumnsV11 = R"sql(
ALTER TABLE allocation ADD COLUMN seen_on TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN overlapped TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN overruled TEXT NOT NULL DEFAULT '';
DROP VIEW current_placements;
CREATE VIEW current_placements AS
SELECT d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt, a.container_id, a.state,
       CASE WHEN d.mode <> 'exclusive' THEN d.mode WHEN a.overruled <> '' THEN 'overruled'
            WHEN a.seen_on <> '' THEN 'drifted' WHEN a.overlapped <> '' THEN 'overlapped' ELSE d.mode END AS mode,
       a.cpus, d.withheld, d.mems, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS since, d.reason,
       d.decision, a.seen_on, a.overlapped,
       coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(nullif(a.overruled, ''), '$.since_ms') / 1000.0,
                         'unixepoch'), '') AS overruled_since
FROM allocation a CROSS JOIN decided d USING (decision)
ORDER BY d.pod_namespace, d.pod_name, d.container, d.attempt;
)sql";

/// Adds whether a container's CPU request is known, who does not leave CPUs, and whose CPUs another hand has set at
/// times.
constexpr const char* kColumnsV12 = R"sql(
ALTER TABLE decided ADD COLUMN cpu_request_certainty TEXT NOT NULL DEFAULT 'told';
ALTER TABLE allocation ADD COLUMN cpu_request_certainty TEXT NOT NULL DEFAULT 'told';
ALTER TABLE allocation ADD COLUMN stuck TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN hand TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN confined INTEGER NOT NULL DEFAULT 0;
DROP VIEW current_placements;
CREATE VIEW current_placements AS
SELECT d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt, a.container_id, a.state,
       CASE WHEN d.mode <> 'exclusive' THEN d.mode WHEN a.overruled <> '' THEN 'overruled'
            WHEN a.seen_on <> '' THEN 'drifted' WHEN a.overlapped <> '' THEN 'overlapped' ELSE d.mode END AS mode,
       a.cpus, d.withheld, d.mems, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS since, d.reason,
       d.decision, a.seen_on, a.overlapped,
       coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(nullif(a.overruled, ''), '$.since_ms') / 1000.0,
                         'unixepoch'), '') AS overruled_since,
       coalesce(json_extract(nullif(a.stuck, ''), '$.cpus'), '') AS stuck_on
FROM allocation a CROSS JOIN decided d USING (decision)
ORDER BY d.pod_namespace, d.pod_name, d.container, d.attempt;
)sql";

/// Adds which containers a pod sandbox has had, in their order, and what estimated memory requests were read from; who
/// has no CFS quota, and which quotas are to come back.
constexpr const char* kColumnsV13 = R"sql(
ALTER TABLE decided ADD COLUMN oom_score_adj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN oom_score_adj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pod ADD COLUMN made TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN cpu_period_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN quota TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN dropped_quota TEXT NOT NULL DEFAULT '';
)sql";

/// Renames the capacities that are reported of NUMA nodes.
constexpr const char* kRenamedV14 = "ALTER TABLE told_capacity RENAME TO reported_capacity;";

/// Completes rows of versions before 14, so that nobody who reads them needs to know of those: the history of a
/// database that was brought to version 5 and not completed since, and values that are JSON.
constexpr const char* kCompletedV15 = R"sql(
INSERT OR IGNORE INTO pod_history
SELECT d.pod_name, d.container, d.pod_namespace, d.decision
FROM backfill b CROSS JOIN decided d ON d.decision BETWEEN b.next AND b.last WHERE d.container <> '';
INSERT OR IGNORE INTO event_history
SELECT d.event, d.at_ms, d.decision
FROM backfill b CROSS JOIN decided d ON d.decision BETWEEN b.next AND b.last WHERE d.event <> 'placed';
INSERT OR IGNORE INTO event_history
SELECT o.state, o.at_ms, o.decision
FROM backfill b CROSS JOIN outcome o ON o.decision BETWEEN b.next AND b.last WHERE o.state <> 'bound';
WITH RECURSIVE power(span, least_ms) AS (SELECT 0, 1 UNION ALL SELECT span + 1, 2 * least_ms FROM power WHERE span < 61)
INSERT OR IGNORE INTO lifetime (span, until_ms, decision, from_ms)
SELECT (SELECT max(span) FROM power WHERE least_ms <= max(1, e.at_ms - d.at_ms)), e.at_ms, d.decision, d.at_ms
FROM backfill b CROSS JOIN decided d ON d.decision BETWEEN b.next AND b.last JOIN ended e ON e.decision = d.decision;
DROP TABLE backfill;
UPDATE allocation SET pod_demand = json_insert(pod_demand, '$.cpu_period_us', 0, '$.cpu_request_certainty', 'told',
                                               '$.oom_score_adj', 0) WHERE pod_demand <> '';
UPDATE allocation SET overruled = json_insert(overruled, '$.cpus', '') WHERE overruled <> '';
)sql";

/// Adds the tags of containers, which containers were found, as far as the audit tells, and the files of cgroups that
/// are set.
constexpr const char* kColumnsV16 = R"sql(
ALTER TABLE decided ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN adopted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN unified TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN kubelet_unified TEXT NOT NULL DEFAULT '';
UPDATE allocation SET adopted = 1 WHERE EXISTS (
  SELECT 1 FROM decided d WHERE d.pod_uid = allocation.pod_uid AND d.container = allocation.container
     AND d.attempt = allocation.attempt AND d.sandbox_id = allocation.sandbox_id AND d.event = 'adopted');
UPDATE allocation SET added = json_insert(added, '$.tags', json('[]'), '$.unified', json('[]'), '$.rdt_class', '')
WHERE added <> '';
)sql";

/// Adds when each container was moved last that could have stayed where it was, and why, what it is widened by, which
/// plugin of the runtime overrules topolet, and which containers of a pod wait for CPUs of their own; the memory nodes
/// that a container keeps in the end, and what memory it left behind; and the sizes of the exclusive containers of the
/// last day.
constexpr const char* kColumnsV17 = R"sql(
UPDATE allocation SET overruled = json_insert(overruled, '$.plugin', '') WHERE overruled <> '';
UPDATE allocation SET preferred = json_insert(preferred, '$.due', json('false')) WHERE preferred <> '';
UPDATE allocation SET added = json_insert(added, '$.memory_policy', NULL, '$.scheduler', NULL, '$.io_priority', NULL)
WHERE added <> '';
ALTER TABLE allocation ADD COLUMN last_move TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN widening TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN waiting TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN mems_to_keep TEXT NOT NULL DEFAULT '';
ALTER TABLE decided ADD COLUMN memory_cost TEXT NOT NULL DEFAULT '';
CREATE TABLE recent_size (
  cpus INTEGER PRIMARY KEY,
  counted_ms INTEGER NOT NULL
) STRICT;
)sql";

/// Stores the CPUs of all containers that run on the whole pool once. The rows of allocations refer to that, and a view
/// in the place of the table shows each of them whole.
constexpr const char* kWholePoolV17 = R"sql(
CREATE TABLE whole_pool (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  cpus TEXT NOT NULL,
  vacating TEXT NOT NULL,
  generation INTEGER NOT NULL
) STRICT;
DROP VIEW live;
DROP VIEW current_placements;
ALTER TABLE allocation RENAME TO allocation_row;
ALTER TABLE allocation_row RENAME COLUMN cpus TO own_cpus;
ALTER TABLE allocation_row RENAME COLUMN vacating TO own_vacating;
ALTER TABLE allocation_row RENAME COLUMN generation TO own_generation;
ALTER TABLE allocation_row ADD COLUMN shares_pool_row INTEGER NOT NULL DEFAULT 0;
CREATE VIEW allocation AS
SELECT r.*,
       coalesce((SELECT w.cpus FROM whole_pool w WHERE r.shares_pool_row), r.own_cpus) AS cpus,
       coalesce((SELECT w.vacating FROM whole_pool w WHERE r.shares_pool_row), r.own_vacating) AS vacating,
       coalesce((SELECT max(w.generation, r.own_generation) FROM whole_pool w WHERE r.shares_pool_row),
                r.own_generation) AS generation
FROM allocation_row r;
CREATE VIEW live AS SELECT decision, state, container_id, cpus, pending_since_ms FROM allocation;
CREATE VIEW current_placements AS
SELECT d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt, a.container_id, a.state,
       CASE WHEN d.mode <> 'exclusive' THEN d.mode WHEN a.overruled <> '' THEN 'overruled'
            WHEN a.seen_on <> '' THEN 'drifted' WHEN a.overlapped <> '' THEN 'overlapped' ELSE d.mode END AS mode,
       a.cpus, d.withheld, d.mems, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS since, d.reason,
       d.decision, a.seen_on, a.overlapped,
       coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(nullif(a.overruled, ''), '$.since_ms') / 1000.0,
                         'unixepoch'), '') AS overruled_since,
       coalesce(json_extract(nullif(a.stuck, ''), '$.cpus'), '') AS stuck_on
FROM allocation a CROSS JOIN decided d USING (decision)
ORDER BY d.pod_namespace, d.pod_name, d.container, d.attempt;
)sql";

/// Adds where containers were that are being moved and could have stayed. The view `allocation` has all columns of the
/// table.
constexpr const char* kColumnsV18 = "ALTER TABLE allocation_row ADD COLUMN moved_from TEXT NOT NULL DEFAULT '';";

/// Adds what BestEffort containers are narrowed to. The view `allocation` has all columns of the table.
constexpr const char* kNarrowedV19 = "ALTER TABLE allocation_row ADD COLUMN narrowed_to TEXT NOT NULL DEFAULT '';";

/// Adds the memory that each BestEffort container may use. The view `allocation` has all columns of the table.
constexpr const char* kMemoryHighV21 = "ALTER TABLE allocation_row ADD COLUMN memory_high INTEGER NOT NULL DEFAULT 0;";

/// Adds the measurements that decisions were made by, each once, and which decision was made by which.
constexpr const char* kLoadV20 = R"sql(
CREATE TABLE load_sample (
  sample INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  load TEXT NOT NULL
) STRICT;
CREATE TABLE decided_load (
  decision INTEGER PRIMARY KEY REFERENCES decided ON DELETE CASCADE,
  sample INTEGER NOT NULL REFERENCES load_sample
) STRICT;
CREATE INDEX decided_load_by_sample ON decided_load (sample);
CREATE TRIGGER forget_load_sample AFTER DELETE ON decided_load
WHEN NOT EXISTS (SELECT 1 FROM decided_load WHERE sample = old.sample)
BEGIN
  DELETE FROM load_sample WHERE sample = old.sample;
END;
)sql";

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> kSteps{
      {10, fmt::format("PRAGMA application_id = {};{}", kApplicationId, schema_v10())},
      {11, kColumnsV11},
      {12, kColumnsV12},
      {13, kColumnsV13},
      {14, kRenamedV14},
      {15, kCompletedV15},
      {16, kColumnsV16},
      {17, fmt::format("{}{}", kColumnsV17, kWholePoolV17)},
      {18, kColumnsV18},
      {19, kNarrowedV19},
      {20, kLoadV20},
      {21, kMemoryHighV21},
  };
  return kSteps;
}

}  // namespace topolet::store
