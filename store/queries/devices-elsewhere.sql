-- Containers that run now on CPUs of other NUMA nodes than a device that they name, if the machine tells where it is.
SELECT p.namespace, p.pod, p.container, p.cpus, d.name AS device, d.nodes AS "device nodes"
FROM current_placements p JOIN container_device d USING (decision)
WHERE d.nodes <> ''
  AND NOT EXISTS (SELECT 1 FROM topology_node n
                  WHERE n.topology = (SELECT max(topology) FROM topology) AND n.memory_only = 0
                    AND cpus_overlap(n.cpus, p.cpus) AND cpus_overlap(CAST(n.node AS TEXT), d.nodes))
ORDER BY p.namespace, p.pod, p.container, d.name;
