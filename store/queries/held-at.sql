-- What was held at one moment of the past, rebuilt from the audit. Put your own time in place of this one.
WITH moment AS (SELECT 1000 * unixepoch('2026-01-31 12:00:00') AS at_ms)
SELECT d.pod_namespace AS namespace, d.pod_name AS pod, d.container, d.mode, d.cpus, d.withheld, d.mems
FROM moment m JOIN decided d ON d.holds AND d.at_ms <= m.at_ms
LEFT JOIN ended e ON e.decision = d.decision
WHERE e.at_ms IS NULL OR e.at_ms > m.at_ms
ORDER BY namespace, pod, d.container;
