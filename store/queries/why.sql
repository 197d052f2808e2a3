-- Why each container is where it is: every candidate that was kept, what each policy said of it, the winner first.
SELECT p.namespace, p.pod, p.container, p.cpus, v.rank, v.nodes, v.sum, v.policy, v.kind, v.score, v.reason
FROM current_placements p CROSS JOIN judged_in(p.decision) j JOIN verdict v ON v.decision = j.judged
ORDER BY p.namespace, p.pod, p.container, v.rank, v.policy;
