#include "store/schema.hpp"

#include <fmt/format.h>

#include "store/schema_v5.hpp"
#include "store/schema_v6.hpp"

namespace topolet::store {
namespace {

constexpr const char* kTablesV1 = R"sql(
CREATE TABLE boot (
  boot INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL UNIQUE,
  first_seen_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE pool_version (
  generation INTEGER PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  at_ms INTEGER NOT NULL,
  cpus TEXT NOT NULL
) STRICT;

-- AUTOINCREMENT: a number is never given twice, even after old rows are deleted.
CREATE TABLE decided (
  decision INTEGER PRIMARY KEY AUTOINCREMENT,
  boot INTEGER NOT NULL REFERENCES boot,
  at_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  event TEXT NOT NULL,
  holds INTEGER NOT NULL CHECK (holds IN (0, 1)),
  supersedes INTEGER,
  pod_uid TEXT NOT NULL,
  pod_namespace TEXT NOT NULL,
  pod_name TEXT NOT NULL,
  container TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  sandbox_id TEXT NOT NULL,
  container_id TEXT NOT NULL,
  runtime_handler TEXT NOT NULL,
  qos TEXT NOT NULL,
  cpu_request_milli INTEGER NOT NULL,
  cpu_limit_milli INTEGER NOT NULL,
  memory_request_bytes INTEGER NOT NULL,
  memory_limit_bytes INTEGER NOT NULL,
  mode TEXT NOT NULL,
  cpus TEXT NOT NULL,
  within TEXT NOT NULL,
  withheld TEXT NOT NULL,
  mems TEXT NOT NULL,
  kubelet_cpus TEXT NOT NULL,
  nodes TEXT NOT NULL,
  reason TEXT NOT NULL,
  verdicts TEXT
) STRICT;
CREATE INDEX decided_by_time ON decided (at_ms);
CREATE INDEX decided_by_generation ON decided (generation);
CREATE INDEX decided_by_container ON decided (pod_uid, container);
CREATE INDEX decided_by_container_id ON decided (container_id);
CREATE INDEX decided_denied ON decided (at_ms) WHERE event = 'denied';

CREATE TABLE outcome (
  outcome INTEGER PRIMARY KEY,
  decision INTEGER NOT NULL REFERENCES decided ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  state TEXT NOT NULL,
  container_id TEXT NOT NULL,
  code INTEGER NOT NULL,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX outcome_by_decision ON outcome (decision);
CREATE INDEX outcome_by_time ON outcome (at_ms, decision);
CREATE INDEX outcome_by_container_id ON outcome (container_id);

CREATE TABLE ended (
  decision INTEGER PRIMARY KEY REFERENCES decided ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  cause TEXT NOT NULL
) STRICT;
CREATE INDEX ended_by_time ON ended (at_ms);
CREATE INDEX ended_by_generation ON ended (generation);

CREATE TABLE held_cpu (
  decision INTEGER NOT NULL REFERENCES decided ON DELETE CASCADE,
  kind TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL CHECK (last >= first),
  PRIMARY KEY (decision, kind, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE repeat (
  decision INTEGER PRIMARY KEY REFERENCES decided ON DELETE CASCADE,
  count INTEGER NOT NULL,
  last_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE live (
  decision INTEGER PRIMARY KEY REFERENCES decided,
  state TEXT NOT NULL,
  container_id TEXT NOT NULL,
  cpus TEXT NOT NULL,
  pending_since_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX live_by_container_id ON live (container_id);

CREATE TABLE pod (
  sandbox_id TEXT PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  pod_uid TEXT NOT NULL,
  pod_namespace TEXT NOT NULL,
  pod_name TEXT NOT NULL,
  runtime_handler TEXT NOT NULL
) STRICT;
CREATE INDEX pod_by_uid ON pod (pod_uid);

CREATE TABLE retention (
  subject TEXT PRIMARY KEY,
  mark INTEGER NOT NULL
) STRICT;
INSERT INTO retention VALUES ('decision', 0), ('pool', 0);
)sql";

/// Keeps `table` append-only. `key` numbers its rows, `mark` is the retention subject that `marked` counts against.
/// INSERT OR REPLACE deletes without firing DELETE triggers, hence the guard on INSERT.
std::string append_only(const char* table, const char* key, const char* marked, const char* mark) {
  return fmt::format(R"sql(
CREATE TRIGGER {table}_is_never_changed BEFORE UPDATE ON {table} BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never changed');
END;
CREATE TRIGGER {table}_is_never_replaced BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {key}) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never replaced');
END;
CREATE TRIGGER {table}_is_kept BEFORE DELETE ON {table}
WHEN OLD.{marked} > coalesce((SELECT mark FROM retention WHERE subject = '{mark}'), 0) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} above the retention mark are never deleted');
END;
)sql",
                     fmt::arg("table", table), fmt::arg("key", key), fmt::arg("marked", marked),
                     fmt::arg("mark", mark));
}

std::string triggers_v1() {
  return append_only("decided", "decision = NEW.decision", "decision", "decision") +
         append_only("outcome", "outcome = NEW.outcome", "decision", "decision") +
         append_only("ended", "decision = NEW.decision", "decision", "decision") +
         append_only("held_cpu", "decision = NEW.decision AND kind = NEW.kind AND first = NEW.first", "decision",
                     "decision") +
         append_only("pool_version", "generation = NEW.generation", "generation", "pool");
}

// CROSS JOIN keeps the order as written: without statistics SQLite would read all of decided to find the few live ones.
// Each part of audit follows its index by time, so that their union is merged and not sorted.
constexpr const char* kViewsV1 = R"sql(
CREATE VIEW current_placements AS
SELECT d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt, l.container_id, l.state, d.mode,
       l.cpus, d.withheld, d.mems, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS since, d.reason,
       d.decision
FROM live l CROSS JOIN decided d USING (decision)
ORDER BY d.pod_namespace, d.pod_name, d.container, d.attempt;

CREATE VIEW decision AS
SELECT d.decision, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS time, d.event,
       d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt,
       CASE WHEN coalesce(o.container_id, '') <> '' THEN o.container_id ELSE d.container_id END AS container_id,
       d.mode, d.cpus, d.withheld, d.mems, d.nodes, d.reason, d.supersedes, d.generation, b.boot_id,
       CASE WHEN o.state IS NULL AND d.holds THEN 'pending' ELSE o.state END AS outcome,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.at_ms / 1000.0, 'unixepoch') AS outcome_time,
       o.code AS outcome_code, o.message AS outcome_message,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.at_ms / 1000.0, 'unixepoch') AS ended_time, e.cause AS ended_cause,
       coalesce(r.count, 0) AS repeats, d.pod_uid, d.at_ms
FROM decided d
JOIN boot b USING (boot)
LEFT JOIN outcome o ON o.outcome = (SELECT max(outcome) FROM outcome WHERE decision = d.decision)
LEFT JOIN ended e ON e.decision = d.decision
LEFT JOIN repeat r ON r.decision = d.decision;

CREATE VIEW audit AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS time, decision, event,
       pod_namespace AS namespace, pod_name AS pod, container, attempt,
       ltrim(mode || CASE cpus WHEN '' THEN '' ELSE ', CPUs ' || cpus END
                  || CASE withheld WHEN '' THEN '' ELSE ', withheld ' || withheld END
                  || CASE mems WHEN '' THEN '' ELSE ', memory nodes ' || mems END
                  || CASE WHEN supersedes IS NULL THEN '' ELSE ', in place of ' || supersedes END, ', ') AS what,
       reason, at_ms
FROM decided
UNION ALL
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', o.at_ms / 1000.0, 'unixepoch'), decision, o.state,
       d.pod_namespace, d.pod_name, d.container, d.attempt,
       ltrim(CASE o.container_id WHEN '' THEN '' ELSE 'container ' || o.container_id END
             || CASE o.code WHEN 0 THEN '' ELSE ', status code ' || o.code END, ', '),
       o.message, o.at_ms
FROM outcome o JOIN decided d USING (decision)
UNION ALL
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', e.at_ms / 1000.0, 'unixepoch'), decision, 'ended',
       d.pod_namespace, d.pod_name, d.container, d.attempt, '', e.cause, e.at_ms
FROM ended e JOIN decided d USING (decision)
ORDER BY at_ms, decision;

CREATE VIEW denials AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS first,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(r.last_ms, d.at_ms) / 1000.0, 'unixepoch') AS last,
       1 + coalesce(r.count, 0) AS times, d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.attempt,
       d.reason, d.decision
FROM decided d LEFT JOIN repeat r USING (decision)
WHERE d.event = 'denied'
ORDER BY d.at_ms, d.decision;

CREATE VIEW verdict AS
SELECT d.decision, c.key + 1 AS rank, json_extract(c.value, '$.nodes') AS nodes,
       json_extract(c.value, '$.score') AS sum, coalesce(json_extract(c.value, '$.rejected'), 0) AS rejected,
       json_extract(w.value, '$[0]') AS policy, json_extract(w.value, '$[1]') AS kind,
       json_extract(w.value, '$[2]') AS score, json_extract(w.value, '$[3]') AS reason
FROM decided d JOIN json_each(d.verdicts, '$.best') c LEFT JOIN json_each(c.value, '$.words') w;

CREATE VIEW verdict_note AS
SELECT d.decision, 'rejected' AS kind, n.key AS note, n.value AS candidates
FROM decided d JOIN json_each(d.verdicts, '$.rejected') n
UNION ALL
SELECT d.decision, 'lost vote', n.value, NULL FROM decided d JOIN json_each(d.verdicts, '$.lost_votes') n
UNION ALL
SELECT d.decision, 'dropped', n.value, NULL FROM decided d JOIN json_each(d.verdicts, '$.dropped') n;
)sql";

constexpr const char* kTablesV2 = R"(
CREATE TABLE plugin_state (
  plugin TEXT NOT NULL,
  key BLOB NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (plugin, key)
) WITHOUT ROWID
)";

constexpr const char* kColumnsV3 = R"(
ALTER TABLE decided ADD COLUMN memory_request_estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decided ADD COLUMN hugepages TEXT NOT NULL DEFAULT '';
ALTER TABLE decided ADD COLUMN settings TEXT NOT NULL DEFAULT '';
ALTER TABLE decided ADD COLUMN kubelet_mems TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN nodes TEXT NOT NULL DEFAULT ''
)";

/// What is held is told by `allocation` alone from here on, of which `live` shows a part. What an older topolet did not
/// keep is told from the decision; a container that it had bound may have been started.
constexpr const char* kColumnsV4 = R"sql(
CREATE TABLE allocation (
  decision INTEGER PRIMARY KEY REFERENCES decided,
  state TEXT NOT NULL,
  container_id TEXT NOT NULL,
  cpus TEXT NOT NULL,
  pending_since_ms INTEGER NOT NULL,
  pod_uid TEXT NOT NULL DEFAULT '',
  container TEXT NOT NULL DEFAULT '',
  attempt INTEGER NOT NULL DEFAULT 0,
  sandbox_id TEXT NOT NULL DEFAULT '',
  pod_namespace TEXT NOT NULL DEFAULT '',
  pod_name TEXT NOT NULL DEFAULT '',
  runtime_handler TEXT NOT NULL DEFAULT '',
  qos TEXT NOT NULL DEFAULT 'besteffort',
  cpu_request_milli INTEGER NOT NULL DEFAULT 0,
  cpu_limit_milli INTEGER NOT NULL DEFAULT 0,
  memory_request_bytes INTEGER NOT NULL DEFAULT 0,
  memory_request_estimated INTEGER NOT NULL DEFAULT 0,
  memory_limit_bytes INTEGER NOT NULL DEFAULT 0,
  hugepages TEXT NOT NULL DEFAULT '',
  kubelet_cpus TEXT NOT NULL DEFAULT '',
  kubelet_mems TEXT NOT NULL DEFAULT '',
  devices TEXT NOT NULL DEFAULT '',
  cdi_devices TEXT NOT NULL DEFAULT '',
  pod_labels TEXT NOT NULL DEFAULT '',
  pod_annotations TEXT NOT NULL DEFAULT '',
  annotations TEXT NOT NULL DEFAULT '',
  settings TEXT NOT NULL DEFAULT '',
  pod_demand TEXT NOT NULL DEFAULT '',
  pod_nodes TEXT NOT NULL DEFAULT '',
  mode TEXT NOT NULL DEFAULT 'shared',
  withheld TEXT NOT NULL DEFAULT '',
  mems TEXT NOT NULL DEFAULT '',
  added TEXT NOT NULL DEFAULT '',
  within TEXT NOT NULL DEFAULT '',
  vacating TEXT NOT NULL DEFAULT '',
  vacating_alone TEXT NOT NULL DEFAULT '',
  conflict INTEGER NOT NULL DEFAULT 0,
  phase TEXT NOT NULL DEFAULT 'pending',
  phase_since_ms INTEGER NOT NULL DEFAULT 0,
  doubt_since_ms INTEGER NOT NULL DEFAULT 0,
  stopping INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  preferred TEXT NOT NULL DEFAULT '',
  arrived_cpus TEXT NOT NULL DEFAULT '',
  evaluated_cpus TEXT NOT NULL DEFAULT '',
  restricted INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO allocation (decision, state, container_id, cpus, pending_since_ms)
SELECT decision, state, container_id, cpus, pending_since_ms FROM live;
ALTER TABLE boot ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pod ADD COLUMN ready INTEGER NOT NULL DEFAULT 1;
ALTER TABLE pod ADD COLUMN annotations TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN former TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN denied TEXT NOT NULL DEFAULT '';
UPDATE allocation SET
  (pod_uid, container, attempt, sandbox_id, pod_namespace, pod_name, runtime_handler, qos, cpu_request_milli,
   cpu_limit_milli, memory_request_bytes, memory_request_estimated, memory_limit_bytes, hugepages, kubelet_cpus,
   kubelet_mems, settings, mode, withheld, mems, within, conflict, generation, reason) =
  (SELECT pod_uid, container, attempt, sandbox_id, pod_namespace, pod_name, runtime_handler,
          CASE qos WHEN '' THEN 'besteffort' ELSE qos END, cpu_request_milli, cpu_limit_milli, memory_request_bytes,
          memory_request_estimated, memory_limit_bytes, hugepages, kubelet_cpus, kubelet_mems, settings,
          CASE mode WHEN '' THEN 'shared' ELSE mode END, withheld, mems, within, event = 'conflict', generation, reason
   FROM decided WHERE decided.decision = allocation.decision),
  phase = CASE state WHEN 'bound' THEN 'starting' WHEN 'crashed' THEN 'crashed' WHEN 'pending' THEN 'pending'
                     ELSE 'in_doubt' END,
  phase_since_ms = pending_since_ms,
  doubt_since_ms = CASE WHEN state IN ('bound', 'crashed', 'pending') THEN 0 ELSE pending_since_ms END,
  state = CASE WHEN state IN ('bound', 'crashed', 'pending') THEN state ELSE 'in_doubt' END,
  container_id = CASE state WHEN 'bound' THEN container_id WHEN 'crashed' THEN container_id ELSE '' END,
  evaluated_cpus = cpus;
DROP TABLE live;
CREATE INDEX allocation_by_container_id ON allocation (container_id);
CREATE VIEW live AS SELECT decision, state, container_id, cpus, pending_since_ms FROM allocation;
)sql";

/// What a container that runs was squeezed into when CPUs went.
constexpr const char* kColumnsV7 = R"sql(
ALTER TABLE allocation ADD COLUMN nodes TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN squeezed TEXT NOT NULL DEFAULT '';
)sql";

/// What was logged of a pod's annotations.
constexpr const char* kColumnsV8 = "ALTER TABLE pod ADD COLUMN warned TEXT NOT NULL DEFAULT '';";

/// What plugins said that a container uses.
constexpr const char* kColumnsV9 = "ALTER TABLE allocation ADD COLUMN used_devices TEXT NOT NULL DEFAULT '';";

/// What was told of the capacity of NUMA nodes.
constexpr const char* kTablesV10 = R"sql(
CREATE TABLE told_capacity (
  node INTEGER PRIMARY KEY,
  milli INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  below_since_ms INTEGER NOT NULL DEFAULT 0,
  lowers INTEGER NOT NULL DEFAULT 0
) STRICT;
)sql";

/// Where the kernel was seen to have a container, and who is overruled.
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

/// Whether anybody tells what CPU a container requests, who does not leave CPUs, and whose CPUs another hand has set at
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

/// Which containers a pod sandbox has had, in their order, and what estimated memory requests were read from; who has
/// no CFS quota, and what is to come back.
constexpr const char* kColumnsV13 = R"sql(
ALTER TABLE decided ADD COLUMN oom_score_adj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN oom_score_adj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pod ADD COLUMN made TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN cpu_period_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN quota TEXT NOT NULL DEFAULT '';
ALTER TABLE pod ADD COLUMN dropped_quota TEXT NOT NULL DEFAULT '';
)sql";

std::int64_t newest(const std::vector<Migration>& steps) { return steps.back().version; }

Result<std::int64_t> version_of(const Database& database) {
  return database.integer("PRAGMA user_version", "read the schema version");
}

Status check_application_id(const Database& database, std::int64_t version) {
  const auto application = database.integer("PRAGMA application_id", "read the application id");
  if (!application) return application.error();
  if (*application == kApplicationId) return {};
  const auto objects = database.integer("SELECT count(*) FROM sqlite_schema", "read the schema");
  if (!objects) return objects.error();
  if (*application == 0 && version == 0 && *objects == 0) return {};
  const auto own_tables = database.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('decided', 'outcome', 'ended', 'held_cpu', "
      "'pool_version', 'boot', 'retention')",
      "read the schema");
  if (!own_tables) return own_tables.error();
  if (*own_tables == 7) {
    return Error{Code::kDataLoss,
                 fmt::format("'{}' is damaged: it has topolet's tables, but not its application id", database.path())};
  }
  return Error{
      Code::kFailedPrecondition,
      fmt::format("'{}' is a database of another program; move it away, or set another state-dir", database.path())};
}

Status check_version(const Database& database, std::int64_t version, std::int64_t known) {
  if (version >= 0 && version <= known) return {};
  constexpr std::int64_t kNoTopoletHas = 10'000;
  if (version < 0 || version > kNoTopoletHas) {
    return Error{Code::kDataLoss, fmt::format("'{}' is damaged: its schema version is {}", database.path(), version)};
  }
  return Error{Code::kFailedPrecondition,
               fmt::format("'{}' has schema version {}, but this topoletd knows only versions up to {}; run the "
                           "topoletd that wrote it or a later one, or move the file away to begin a new one",
                           database.path(), version, known)};
}

Status quick_check(const Database& database, const std::string& what) {
  const auto answer = database.text("PRAGMA quick_check" + what, "check the pages");
  if (!answer) return answer.error();
  if (*answer == "ok") return {};
  return Error{Code::kDataLoss, fmt::format("'{}' is damaged: {}", database.path(), *answer)};
}

/// To read all of a large file takes many seconds: of that only what a start needs is checked, which is never large.
/// IntegrityCheck reads the rest.
Status check_pages(const Database& database) {
  constexpr std::int64_t kCheckedWholePages = 1024;
  const auto pages = database.integer("PRAGMA page_count", "read its size");
  if (!pages) return pages.error();
  if (*pages <= kCheckedWholePages) return quick_check(database, "(1)");
  auto tables = database.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('allocation', 'live', 'pod', "
      "'told_capacity', 'boot', 'retention', 'sqlite_sequence')",
      "read the schema");
  if (!tables) return tables.error();
  while (true) {
    const auto more = tables->next();
    if (!more) return more.error();
    if (!*more) return {};
    if (Status checked = quick_check(database, fmt::format("('{}')", tables->text(0))); !checked) return checked;
  }
}

Status apply_migration(Database& database, const Migration& step) {
  const std::string purpose = fmt::format("bring the schema to version {}", step.version);
  std::string more;
  if (!step.sql_if_empty.empty()) {
    const auto decisions = database.integer("SELECT EXISTS (SELECT 1 FROM decided)", purpose);
    if (!decisions) return decisions.error();
    if (*decisions == 0) more = step.sql_if_empty;
  }
  const std::string sql =
      fmt::format("BEGIN IMMEDIATE; {}; {}; PRAGMA user_version = {}; COMMIT;", step.sql, more, step.version);
  Status taken = database.execute(sql, purpose);
  if (!taken && database.in_transaction()) static_cast<void>(database.execute("ROLLBACK", purpose));
  // The steps suit every database of the version before: this one is not what its version says.
  const bool never_fits =
      !taken && (taken.error().code == Code::kInternal || taken.error().code == Code::kFailedPrecondition);
  if (never_fits) return Error{Code::kDataLoss, "damaged: " + taken.error().message};
  return taken;
}

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> kSteps{
      {1, fmt::format("PRAGMA application_id = {};{}{}{}", kApplicationId, kTablesV1, triggers_v1(), kViewsV1)},
      {2, kTablesV2},
      {3, kColumnsV3},
      {4, kColumnsV4},
      {5, schema_v5(), schema_v5_if_empty()},
      {6, schema_v6()},
      {7, kColumnsV7},
      {8, kColumnsV8},
      {9, kColumnsV9},
      {10, kTablesV10},
      {11, kColumnsV11},
      {12, kColumnsV12},
      {13, kColumnsV13},
  };
  return kSteps;
}

Status check_writable(const Database& database, const std::vector<Migration>& steps) {
  const auto version = version_of(database);
  if (!version) return version.error();
  if (Status owner = check_application_id(database, *version); !owner) return owner;
  if (Status known = check_version(database, *version, newest(steps)); !known) return known;
  return check_pages(database);
}

Status migrate(Database& database, const std::vector<Migration>& steps) {
  const auto version = version_of(database);
  if (!version) return version.error();
  for (const Migration& step : steps) {
    if (step.version <= *version) continue;
    if (Status taken = apply_migration(database, step); !taken) return taken;
  }
  return {};
}

}  // namespace topolet::store
