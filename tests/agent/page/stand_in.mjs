// Serves the page and an agent's interface with a made-up machine. Usage: node stand_in.mjs PAGE_FOLDER NODES CORES PORT
// The stream has a state and one delta, and ends: a browser that only prints the page waits for the end of all it loads.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const [folder, nodes, cores, port] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const perNode = 2 * cores;
const range = (first, count) => `${first}-${first + count - 1}`;

function container(pod, mode, cpus, more = {}) {
  return { key: { pod_uid: `uid-${pod}`, name: "main", attempt: 0, sandbox_id: `s-${pod}` }, pod_name: pod,
    pod_namespace: "default", qos: mode === "exclusive" ? "guaranteed" : "burstable", phase: "running", mode, cpus,
    withheld: "", mems: "", nodes: "", cpu_request_milli: 1000, reason: `numa: ${pod} fits`, used_devices: [], ...more };
}

const machine = { packages: [], l3s: [], cores: [], nodes: [], devices: [{ name: "nvidia0", nodes: "0", cpus: "" }, { name: "nvme", nodes: "0-1", cpus: "" }] };
for (let node = 0; node < nodes; ++node) {
  machine.nodes.push({ os_index: node, cpus: range(node * perNode, perNode), memory_bytes: 64 * 2 ** 30, memory_only: false });
  for (let half = 0; half < 2; ++half) machine.l3s.push(range(node * perNode + half * cores, cores));
  for (let core = 0; core < cores; ++core) machine.cores.push(range(node * perNode + 2 * core, 2));
}
machine.nodes.push({ os_index: nodes, cpus: "", memory_bytes: 2 ** 34, memory_only: true });
const packages = Math.max(1, nodes / 8);
for (let i = 0; i < packages; ++i) machine.packages.push(range(i * nodes * perNode / packages, nodes * perNode / packages));
const all = nodes * perNode;
machine.online = range(0, all);
machine.present = range(0, all + 2);

const containers = [container("trader", "exclusive", "4-5", { withheld: "6-7" }),
  container("<img src=x onerror=alert(1)>", "shared", range(8, 8))];
for (let i = 1; i < Math.min(nodes * 8, 500); ++i) {
  const first = i * perNode / 8 | 0;
  if (first + 1 < all && first > 16) containers.push(container(`pod-${i}`, i % 5 ? "shared" : "exclusive", range(first, 2)));
}
const state = { instance: "i", version: "1", generation: 10, reconciled: true, machine,
  cpus: { allowed: range(0, all), reserved: "0-1", isolated: "", pool: `2-3,8-${all - 1}` }, containers, plugins: [] };
const moved = { generation: 11, time_ms: Date.now(), changed: [container("trader", "exclusive", "8-9")],
  events: [{ event: "re-placed", decision: 7, key: containers[0].key, pod_name: "trader", pod_namespace: "default",
    reason: "it returns", reason_code: "returned", candidates: [{ nodes: "0", score: 42, rejected: false,
      opinions: [{ policy: "numa", kind: "score", score: 42, reason: "all fit" }] }] }] };

let streams = 0;
const types = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
createServer(async (request, response) => {
  const path = request.url === "/" ? "/index.html" : request.url;
  if (path === "/api/history") {
    response.end(JSON.stringify({ base: state, base_time_ms: Date.now() - 60000, deltas: [moved] }));
  } else if (path === "/api/changes" && streams++ > 0) {
    response.writeHead(204).end();
  } else if (path === "/api/changes") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (event, data) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    send("connection", { connected: true });
    send("state", state);
    setTimeout(() => { send("delta", moved); response.end(); }, 300);
  } else {
    try {
      const file = await readFile(folder + path);
      response.writeHead(200, { "Content-Type": types[path.split(".").pop()],
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" });
      response.end(file);
    } catch {
      response.writeHead(404).end();
    }
  }
}).listen(port, "127.0.0.1", function () { console.log(this.address().port); });
