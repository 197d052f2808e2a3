-- Containers that run now with a device that is not local to all their CPUs, in the words of the plugin gpu. What it says
-- of the candidate that won comes first, before what it says of other nodes.
SELECT p.namespace, p.pod, p.container, p.cpus, substr(v.reason, 1, instr(v.reason || ';', ';') - 1) AS said
FROM current_placements p CROSS JOIN judged_in(p.decision) j JOIN verdict v ON v.decision = j.judged
WHERE v.rank = 1 AND v.policy = 'gpu'
  AND (said LIKE '%: no % is local%' OR said LIKE '%, the other% at %' OR said LIKE '% local to %')
ORDER BY p.namespace, p.pod, p.container;
