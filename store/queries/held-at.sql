-- What was held at one moment of the past, with the CPUs of that moment. Put your own time in place of this one.
SELECT namespace, pod, container, mode, cpus, withheld, mems FROM held_at('2026-01-31 12:00')
ORDER BY namespace, pod, container;
