#include "store/schema_v6.hpp"

namespace topolet::store {

std::string schema_v6() {
  return R"sql(
ALTER TABLE decided ADD COLUMN devices TEXT NOT NULL DEFAULT '';

CREATE TABLE topology_device (
  topology INTEGER NOT NULL REFERENCES topology,
  name TEXT NOT NULL,
  address TEXT NOT NULL,
  kind TEXT NOT NULL,
  nodes TEXT NOT NULL,
  PRIMARY KEY (topology, name, address)
) STRICT, WITHOUT ROWID;

CREATE VIEW container_device AS
SELECT d.decision, strftime('%Y-%m-%dT%H:%M:%fZ', d.at_ms / 1000.0, 'unixepoch') AS time, d.event,
       d.pod_namespace AS namespace, d.pod_name AS pod, d.container, json_extract(v.value, '$.name') AS name,
       coalesce(json_extract(v.value, '$.address'), '') AS address, json_extract(v.value, '$.nodes') AS nodes,
       d.cpus, d.mems, d.at_ms
FROM decided d JOIN json_each(nullif(d.devices, '')) v;
)sql";
}

}  // namespace topolet::store
