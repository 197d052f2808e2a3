#include "store/schema_v5.hpp"

#include <fmt/format.h>

namespace topolet::store {
namespace {

/// A lifetime of 2^45 ms is longer than there have been computers.
constexpr int kSpans = 45;

constexpr const char* kColumns = R"sql(
ALTER TABLE decided ADD COLUMN reason_code TEXT NOT NULL DEFAULT '';
ALTER TABLE decided ADD COLUMN caused_by INTEGER;
ALTER TABLE decided ADD COLUMN setup INTEGER;
ALTER TABLE decided ADD COLUMN phases TEXT NOT NULL DEFAULT '';
ALTER TABLE decided ADD COLUMN conflict INTEGER;
ALTER TABLE outcome ADD COLUMN phases TEXT NOT NULL DEFAULT '';
ALTER TABLE pool_version ADD COLUMN free_reserved TEXT;
ALTER TABLE pool_version ADD COLUMN free_isolated TEXT;
ALTER TABLE pool_version ADD COLUMN caused_by INTEGER;
ALTER TABLE pool_version ADD COLUMN cause TEXT NOT NULL DEFAULT '';
)sql";

constexpr const char* kTables = R"sql(
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

-- Indexes as tables of their own: those of a database with a long history are filled in slices while topoletd runs.
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
INSERT INTO backfill SELECT 'decided', 1, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'decided'), 0);
INSERT INTO retention VALUES ('ended_ms', 0);
UPDATE boot SET generation = max(generation,
  coalesce((SELECT max(generation) FROM decided), 0), coalesce((SELECT max(generation) FROM ended), 0),
  coalesce((SELECT max(generation) FROM pool_version), 0))
WHERE boot = (SELECT max(boot) FROM boot);
)sql";

constexpr const char* kIndexTriggers = R"sql(
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

/// What is decided may be deleted when it has ended before the mark; what belongs to it only with it.
constexpr const char* kRetentionTriggers = R"sql(
DROP TRIGGER decided_is_kept;
CREATE TRIGGER decided_is_kept BEFORE DELETE ON decided
WHEN OLD.decision > coalesce((SELECT mark FROM retention WHERE subject = 'decision'), 0)
 AND coalesce(CASE OLD.holds
       WHEN 1 THEN (SELECT at_ms FROM ended WHERE decision = OLD.decision)
       ELSE max(OLD.at_ms, coalesce((SELECT last_ms FROM repeat WHERE decision = OLD.decision), 0))
     END >= (SELECT mark FROM retention WHERE subject = 'ended_ms'), 1) BEGIN
  SELECT RAISE(ABORT, 'rows of decided above the retention mark are never deleted');
END;
)sql";

std::string kept_with_decision(const char* table) {
  return fmt::format(R"sql(
DROP TRIGGER {table}_is_kept;
CREATE TRIGGER {table}_is_kept BEFORE DELETE ON {table}
WHEN OLD.decision > coalesce((SELECT mark FROM retention WHERE subject = 'decision'), 0)
 AND EXISTS (SELECT 1 FROM decided WHERE decision = OLD.decision) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never deleted before their decision');
END;
)sql",
                     fmt::arg("table", table));
}

/// The span of what has ended is not known any more: every one is looked up.
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

std::string append_only(const char* table, const char* key) {
  return fmt::format(R"sql(
CREATE TRIGGER {table}_is_never_changed BEFORE UPDATE ON {table} BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never changed');
END;
CREATE TRIGGER {table}_is_never_replaced BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) BEGIN
  SELECT RAISE(ABORT, 'rows of {table} are never replaced');
END;
)sql",
                     fmt::arg("table", table), fmt::arg("key", key));
}

}  // namespace

std::string schema_v5() {
  return std::string(kColumns) + kTables + kIndexTriggers + lifetime_trigger() + kRetentionTriggers +
         kept_with_decision("outcome") + kept_with_decision("ended") + kept_with_decision("held_cpu") +
         append_only("topology", "topology") + append_only("config", "digest") + append_only("setup", "setup");
}

std::string schema_v5_if_empty() {
  return R"sql(
DROP INDEX decided_by_generation;
DROP INDEX ended_by_generation;
)sql";
}

}  // namespace topolet::store
