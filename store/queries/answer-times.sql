-- How long the runtime took to answer, by handler and answer, in milliseconds.
SELECT d.runtime_handler, o.state, count(*) AS answers, avg(o.at_ms - d.at_ms) AS mean_ms,
       max(o.at_ms - d.at_ms) AS longest_ms
FROM outcome o JOIN decided d USING (decision)
GROUP BY d.runtime_handler, o.state
ORDER BY longest_ms DESC;
