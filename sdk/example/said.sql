SELECT pod, container, verdict.nodes, policy, score, verdict.reason
FROM verdict JOIN decision USING (decision)
WHERE rank = 1
ORDER BY decision, policy;
