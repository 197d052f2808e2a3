// Serves the page and an agent's interface with a made-up machine that the test changes.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const kTypes = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8",
  svg: "image/svg+xml; charset=utf-8" };
const range = (first, count) => `${first}-${first + count - 1}`;

export function container(pod, mode, cpus, more = {}) {
  return { key: { pod_uid: `uid-${pod}`, name: "main", attempt: 0, sandbox_id: `s-${pod}` }, pod_name: pod,
    pod_namespace: "default", qos: mode === "exclusive" ? "guaranteed" : "burstable", phase: "running", mode, cpus,
    withheld: "", mems: "", nodes: "", cpu_request_milli: 1000, reason: `numa: ${pod} fits`, used_devices: [], ...more };
}

export function event(word, pod, more = {}) {
  return { event: word, decision: 7, key: container(pod, "shared", "").key, pod_name: pod, pod_namespace: "default",
    reason: `why ${pod}`, reason_code: "", nodes: "", qos: "burstable", candidates: [], ...more };
}

/** `nodes` with `cores` cores of two CPUs each; a node of memory only; two CPUs that are offline. */
function machineOf(nodes, cores) {
  const perNode = 2 * cores;
  const all = nodes * perNode;
  const packages = Math.max(1, nodes / 8);
  const machine = { packages: [], l3s: [], cores: [], nodes: [], online: range(0, all), present: range(0, all + 2),
    devices: [{ name: "nvidia0", nodes: "0", cpus: "" }, { name: "nvme", nodes: "0-1", cpus: "" }] };
  for (let node = 0; node < nodes; ++node) {
    machine.nodes.push({ os_index: node, cpus: range(node * perNode, perNode), memory_bytes: 64 * 2 ** 30, memory_only: false });
    for (let half = 0; half < 2; ++half) machine.l3s.push(range(node * perNode + half * cores, cores));
    for (let core = 0; core < cores; ++core) machine.cores.push(range(node * perNode + 2 * core, 2));
  }
  machine.nodes.push({ os_index: nodes, cpus: "", memory_bytes: 2 ** 34, memory_only: true });
  for (let i = 0; i < packages; ++i) machine.packages.push(range(i * all / packages, all / packages));
  return machine;
}

export const kHostileName = "<img src=x onerror=alert(1)>";

/** CPUs 0 and 1 are reserved, 4 and 5 the pod trader's, who keeps 6 and 7 idle; 8 to 15 are of a hostile pod. */
export function stateOf(nodes, cores) {
  const perNode = 2 * cores;
  const all = nodes * perNode;
  const containers = [container("trader", "exclusive", "4-5", { withheld: "6-7", nodes: "0", mems: "0" }),
    container(kHostileName, "shared", range(8, 8))];
  for (let i = 1; i < Math.min(nodes * 8, 500); ++i) {
    const first = i * perNode / 8 | 0;
    if (first + 1 < all && first > 16) containers.push(container(`pod-${i}`, i % 5 ? "shared" : "exclusive", range(first, 2)));
  }
  return { instance: "i", version: "1", generation: 10, reconciled: true, machine: machineOf(nodes, cores),
    cpus: { allowed: range(0, all), reserved: "0-1", isolated: "3", pool: `2,8-${all - 1}` }, containers, plugins: [] };
}

export class StandIn {
  /** `headers`: what is sent with every file. `history`: deltas that were before. */
  static async serve(folder, state, { headers = {}, history = [] } = {}) {
    const made = new StandIn();
    Object.assign(made, { folder, state, headers, history, streams: new Set(), generation: state.generation });
    made.first = state;
    made.agent = { version: "1", node: "n1", illnesses: [] };
    made.number = history.length;
    made.server = createServer((request, response) => made.answer(request, response));
    await new Promise((resolve) => made.server.listen(0, "127.0.0.1", resolve));
    made.url = `http://127.0.0.1:${made.server.address().port}/`;
    return made;
  }

  async answer(request, response) {
    const [path] = request.url.split("?");
    if (path === "/api/history") {
      const base = this.history.length > 0 ? { ...this.first, generation: this.history[0].generation - 1 } : this.first;
      const time = (this.history[0]?.time_ms ?? Date.now()) - 60000;
      const deltas = this.history.map((delta, i) => ({ ...delta, number: i + 1 }));
      response.end(JSON.stringify({ base, base_time_ms: time, connected: true, number: this.number, deltas }));
    } else if (path === "/api/changes") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      this.streams.add(response);
      request.on("close", () => this.streams.delete(response));
      this.write(response, "connection", { connected: true });
      this.write(response, "agent", this.agent);
      this.write(response, "state", this.state);
    } else {
      await this.sendFile(path === "/" ? "/index.html" : path, response);
    }
  }

  async sendFile(path, response) {
    try {
      const file = await readFile(this.folder + path);
      response.writeHead(200, { ...this.headers, "Content-Type": kTypes[path.split(".").pop()] });
      response.end(file);
    } catch {
      response.writeHead(404).end();
    }
  }

  write(response, name, data) { response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`); }

  send(name, data) { for (const response of this.streams) this.write(response, name, data); }

  /** One more change: `parts` of a delta. */
  change(parts) {
    this.send("delta", { number: ++this.number, generation: ++this.generation, time_ms: Date.now(), ...parts });
  }

  stop() {
    for (const response of this.streams) response.destroy();
    this.server.closeAllConnections();
    this.server.close();
  }
}
