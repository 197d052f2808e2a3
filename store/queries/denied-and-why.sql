-- What was denied, most often first, with how many candidates were rejected for each reason.
SELECT n.times, n.last, n.namespace, n.pod, n.container, n.reason, v.note AS rejected_because, v.candidates
FROM denials n LEFT JOIN verdict_note v ON v.decision = n.decision AND v.kind = 'rejected'
ORDER BY n.times DESC, n.decision, v.candidates DESC;
