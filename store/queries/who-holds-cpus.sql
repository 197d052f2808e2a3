-- Who holds which CPUs alone, withheld ones and the reserved mode's included, in the order of the CPUs.
SELECT h.first, h.last, h.kind, p.namespace, p.pod, p.container, p.since
FROM held_cpu h JOIN current_placements p USING (decision)
ORDER BY h.first, h.kind;
