#include "store/schema_v10.hpp"

#include <fmt/format.h>

namespace topolet::store {
namespace {

/// A lifetime of 2^45 ms is longer than there have been computers.
constexpr int kSpans = 45;

constexpr const char* kAudit = R"sql(
CREATE TABLE boot (
  boot INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL UNIQUE,
  first_seen_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE pool_version (
  generation INTEGER PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  at_ms INTEGER NOT NULL,
  cpus TEXT NOT NULL,
  free_reserved TEXT,
  free_isolated TEXT,
  caused_by INTEGER,
  cause TEXT NOT NULL DEFAULT ''
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
  verdicts TEXT,
  memory_request_estimated INTEGER NOT NULL DEFAULT 0,
  hugepages TEXT NOT NULL DEFAULT '',
  settings TEXT NOT NULL DEFAULT '',
  kubelet_mems TEXT NOT NULL DEFAULT '',
  reason_code TEXT NOT NULL DEFAULT '',
  caused_by INTEGER,
  setup INTEGER,
  phases TEXT NOT NULL DEFAULT '',
  conflict INTEGER,
  devices TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX decided_by_time ON decided (at_ms);
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
  message TEXT NOT NULL,
  phases TEXT NOT NULL DEFAULT ''
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
)sql";

/// The ledger. `live` shows a part of it.
constexpr const char* kLedger = R"sql(
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
  restricted INTEGER NOT NULL DEFAULT 0,
  nodes TEXT NOT NULL DEFAULT '',
  squeezed TEXT NOT NULL DEFAULT '',
  used_devices TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX allocation_by_container_id ON allocation (container_id);

CREATE TABLE pod (
  sandbox_id TEXT PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  pod_uid TEXT NOT NULL,
  pod_namespace TEXT NOT NULL,
  pod_name TEXT NOT NULL,
  runtime_handler TEXT NOT NULL,
  nodes TEXT NOT NULL DEFAULT '',
  ready INTEGER NOT NULL DEFAULT 1,
  annotations TEXT NOT NULL DEFAULT '',
  former TEXT NOT NULL DEFAULT '',
  denied TEXT NOT NULL DEFAULT '',
  warned TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX pod_by_uid ON pod (pod_uid);

CREATE TABLE told_capacity (
  node INTEGER PRIMARY KEY,
  milli INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  below_since_ms INTEGER NOT NULL DEFAULT 0,
  lowers INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE plugin_state (
  plugin TEXT NOT NULL,
  key BLOB NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (plugin, key)
) WITHOUT ROWID;

CREATE TABLE retention (
  subject TEXT PRIMARY KEY,
  mark INTEGER NOT NULL
) STRICT;
INSERT INTO retention VALUES ('decision', 0), ('pool', 0), ('ended_ms', 0);
)sql";

constexpr const char* kSetup = R"sql(
CREATE TABLE topology (
  topology INTEGER PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  at_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  digest TEXT NOT NULL,
  allowed TEXT NOT NULL,
  reserved TEXT NOT NULL,
  isolated TEXT NOT NULL
) STRICT;

CREATE TABLE topology_cpu (
  topology INTEGER NOT NULL REFERENCES topology,
  cpu INTEGER NOT NULL,
  node INTEGER,
  core INTEGER,
  l3 INTEGER,
  package INTEGER,
  PRIMARY KEY (topology, cpu)
) STRICT, WITHOUT ROWID;

CREATE TABLE topology_node (
  topology INTEGER NOT NULL REFERENCES topology,
  node INTEGER NOT NULL,
  cpus TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL,
  memory_only INTEGER NOT NULL,
  PRIMARY KEY (topology, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE config (
  digest TEXT PRIMARY KEY,
  first_ms INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE setup (
  setup INTEGER PRIMARY KEY,
  boot INTEGER NOT NULL REFERENCES boot,
  at_ms INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  version TEXT NOT NULL,
  config TEXT NOT NULL REFERENCES config,
  plugins TEXT NOT NULL
) STRICT;

CREATE TABLE topology_device (
  topology INTEGER NOT NULL REFERENCES topology,
  name TEXT NOT NULL,
  address TEXT NOT NULL,
  kind TEXT NOT NULL,
  nodes TEXT NOT NULL,
  PRIMARY KEY (topology, name, address)
) STRICT, WITHOUT ROWID;
)sql";

/// Indexes that are tables of their own: smaller than those over rows that are mostly of no interest.
constexpr const char* kHistory = R"sql(
CREATE TABLE pod_history (
  pod_name TEXT NOT NULL,
  container TEXT NOT NULL,
  pod_namespace TEXT NOT NULL,
  decision INTEGER NOT NULL,
  PRIMARY KEY (pod_name, container, pod_namespace, decision)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_history (
  event TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  decision INTEGER NOT NULL,
  PRIMARY KEY (event, at_ms, decision)
) STRICT, WITHOUT ROWID;

CREATE TABLE lifetime (
  span INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  decision INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  PRIMARY KEY (span, until_ms, decision)
) STRICT, WITHOUT ROWID;

CREATE TABLE backfill (
  subject TEXT PRIMARY KEY,
  next INTEGER NOT NULL,
  last INTEGER NOT NULL
) STRICT;
)sql";

constexpr const char* kHistoryTriggers = R"sql(
CREATE TRIGGER decided_is_found_by_pod AFTER INSERT ON decided WHEN NEW.container <> '' BEGIN
  INSERT INTO pod_history VALUES (NEW.pod_name, NEW.container, NEW.pod_namespace, NEW.decision);
END;
CREATE TRIGGER decided_is_found_by_event AFTER INSERT ON decided WHEN NEW.event <> 'placed' BEGIN
  INSERT INTO event_history VALUES (NEW.event, NEW.at_ms, NEW.decision);
END;
CREATE TRIGGER outcome_is_found_by_event AFTER INSERT ON outcome WHEN NEW.state <> 'bound' BEGIN
  INSERT OR IGNORE INTO event_history VALUES (NEW.state, NEW.at_ms, NEW.decision);
END;
CREATE TRIGGER decided_is_found_no_more AFTER DELETE ON decided BEGIN
  DELETE FROM pod_history WHERE pod_name = OLD.pod_name AND container = OLD.container
    AND pod_namespace = OLD.pod_namespace AND decision = OLD.decision;
  DELETE FROM event_history WHERE event = OLD.event AND at_ms = OLD.at_ms AND decision = OLD.decision;
END;
CREATE TRIGGER outcome_is_found_no_more AFTER DELETE ON outcome BEGIN
  DELETE FROM event_history WHERE event = OLD.state AND at_ms = OLD.at_ms AND decision = OLD.decision;
END;
)sql";

/// Rows of `decided` may be deleted once their end is before the mark, and rows that belong to them only with them.
constexpr const char* kDecidedIsKept = R"sql(
CREATE TRIGGER decided_is_kept BEFORE DELETE ON decided
WHEN OLD.decision > coalesce((SELECT mark FROM retention WHERE subject = 'decision'), 0)
 AND coalesce(CASE OLD.holds
       WHEN 1 THEN (SELECT at_ms FROM ended WHERE decision = OLD.decision)
       ELSE max(OLD.at_ms, coalesce((SELECT last_ms FROM repeat WHERE decision = OLD.decision), 0))
     END >= (SELECT mark FROM retention WHERE subject = 'ended_ms'), 1) BEGIN
  SELECT RAISE(ABORT, 'rows of decided above the retention mark are never deleted');
END;
)sql";

// CROSS JOIN keeps the order as written: without statistics SQLite would read all of decided to find the few live ones.
// Each part of audit follows its index by time, so that their union is merged and not sorted.
constexpr const char* kViews = R"sql(
CREATE VIEW live AS SELECT decision, state, container_id, cpus, pending_since_ms FROM allocation;

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

CREATE VIEW container_device AS
SELECT d.decision, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS time, d.event,
       d.pod_namespace AS namespace, d.pod_name AS pod, d.container, json_extract(v.value, '$.name') AS name,
       coalesce(json_extract(v.value, '$.address'), '') AS address, json_extract(v.value, '$.nodes') AS nodes,
       d.cpus, d.mems, d.at_ms
FROM decided d JOIN json_each(nullif(d.devices, '')) v;
)sql";

/// Keeps `table` from changes. `same_row`: finds the row that a new one would replace, as INSERT OR REPLACE deletes
/// without firing DELETE triggers.
std::string never_changed(const char* table, const char* same_row) {
  return fmt::format(R"sql(
CREATE TRIGGER {table}_is_never_changed BEFORE UPDATE ON {table} BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never changed');
END;
CREATE TRIGGER {table}_is_never_replaced BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {same_row}) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never replaced');
END;
)sql",
                     fmt::arg("table", table), fmt::arg("same_row", same_row));
}

std::string kept_with_decision(const char* table) {
  return fmt::format(R"sql(
CREATE TRIGGER {table}_is_kept BEFORE DELETE ON {table}
WHEN OLD.decision > coalesce((SELECT mark FROM retention WHERE subject = 'decision'), 0)
 AND EXISTS (SELECT 1 FROM decided WHERE decision = OLD.decision) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never deleted before their decision');
END;
)sql",
                     fmt::arg("table", table));
}

constexpr const char* kPoolIsKept = R"sql(
CREATE TRIGGER pool_version_is_kept BEFORE DELETE ON pool_version
WHEN OLD.generation > coalesce((SELECT mark FROM retention WHERE subject = 'pool'), 0) BEGIN
  SELECT RAISE(ABORT, 'rows of pool_version above the retention mark are never deleted');
END;
)sql";

/// The span of a row of `ended` is not known any more: every one is looked up.
std::string lifetime_trigger() {
  std::string spans;
  for (int span = 0; span < kSpans; ++span) spans += fmt::format("{}{}", span == 0 ? "" : ", ", span);
  return fmt::format(R"sql(
CREATE TRIGGER ended_is_found_no_more AFTER DELETE ON ended BEGIN
  DELETE FROM lifetime WHERE span IN ({}) AND until_ms = OLD.at_ms AND decision = OLD.decision;
END;
)sql",
                     spans);
}

std::string audit_triggers() {
  return never_changed("decided", "decision = NEW.decision") + never_changed("outcome", "outcome = NEW.outcome") +
         never_changed("ended", "decision = NEW.decision") +
         never_changed("held_cpu", "decision = NEW.decision AND kind = NEW.kind AND first = NEW.first") +
         never_changed("pool_version", "generation = NEW.generation") +
         never_changed("topology", "topology = NEW.topology") + never_changed("config", "digest = NEW.digest") +
         never_changed("setup", "setup = NEW.setup") + kDecidedIsKept + kept_with_decision("outcome") +
         kept_with_decision("ended") + kept_with_decision("held_cpu") + kPoolIsKept;
}

}  // namespace

std::string schema_v10() {
  return std::string(kAudit) + kLedger + kSetup + kHistory + audit_triggers() + kHistoryTriggers + lifetime_trigger() +
         kViews;
}

}  // namespace topolet::store
