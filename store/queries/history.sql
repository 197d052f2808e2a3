-- Everything that happened to the containers of one name, oldest first. Put your own name in place of 'app'.
SELECT time, namespace, pod, attempt, event, what, reason FROM audit WHERE container = 'app';
