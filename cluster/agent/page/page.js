import { apply, begin, colourOf, cpuTable, keyOf, parseSet } from "./node.js";

const find = (id) => document.getElementById(id);
const kMostEvents = 50;
const kLoudEvents = new Set(["denied", "re-placed", "squeezed", "drift", "gap", "conflict", "quarantined", "unpinned"]);

let live = null;       // the node as it is now
let shown = null;      // as it is drawn: live, or a moment of the past
let past = null;       // { states at times } while the slider is away from now
let connected = false;
let streaming = false;
let chosen = null;     // the key of the container whose details are shown
let drawing = false;
const lastEvents = new Map();  // by key: the newest decision that was told of it
const cpuButtons = new Map();
let drawnMachine = null;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const nameOf = (one) => `${one.pod_namespace}/${one.pod_name}/${one.key.name}`;

// Machine

function drawMachine(machine) {
  const root = find("machine");
  root.replaceChildren();
  cpuButtons.clear();
  const online = new Set(parseSet(machine.online));
  const cores = (machine.cores ?? []).map(parseSet);
  const caches = (machine.l3s ?? []).map(parseSet);
  const packages = (machine.packages ?? []).map(parseSet);
  const drawn = new Set();
  const cpuButton = (cpu) => {
    const button = element("button", { type: "button", className: "cpu", textContent: cpu, tabIndex: -1 });
    button.dataset.cpu = cpu;
    cpuButtons.set(cpu, button);
    drawn.add(cpu);
    return button;
  };
  const coresOf = (cpus) => {
    const wanted = new Set(cpus);
    const boxes = [];
    for (const core of cores) {
      const here = core.filter((cpu) => wanted.has(cpu) && !drawn.has(cpu));
      if (here.length > 0) boxes.push(element("span", { className: "core" }, ...here.map(cpuButton)));
    }
    for (const cpu of cpus) if (!drawn.has(cpu)) boxes.push(cpuButton(cpu));
    return boxes;
  };
  const nodeBox = (title, cpus) => {
    const box = element("div", { className: "node" }, element("p", { className: "name", textContent: title }));
    const wanted = new Set(cpus);
    for (const cache of caches) {
      const here = cache.filter((cpu) => wanted.has(cpu));
      if (here.length > 0) box.append(element("span", { className: "cache" }, ...coresOf(here)));
    }
    const rest = cpus.filter((cpu) => !drawn.has(cpu));
    if (rest.length > 0) box.append(element("span", { className: "cache" }, ...coresOf(rest)));
    const devices = (machine.devices ?? []).filter((one) => title.startsWith(`node ${one.nodes}:`));
    if (devices.length > 0) {
      box.append(element("p", { className: "name", textContent: devices.map((one) => one.name).join(", ") }));
    }
    return box;
  };
  const titleOf = (node) => `node ${node.os_index}: ${node.memory_bytes ? Math.round(node.memory_bytes / 2 ** 30) + " GiB" : "memory unknown"}${node.memory_only ? ", no CPUs" : ""}`;
  const places = packages.map((cpus, number) => ({ cpus: new Set(cpus), box: element("div", { className: "package" },
    element("p", { className: "name", textContent: `package ${number}` })) }));
  for (const node of machine.nodes ?? []) {
    const cpus = node.memory_only ? [] : parseSet(node.cpus);
    const place = places.find((one) => cpus.some((cpu) => one.cpus.has(cpu)));
    (place ? place.box : root).append(nodeBox(titleOf(node), cpus));
  }
  for (const place of places) root.prepend(place.box);
  root.prepend(...places.map((place) => place.box));
  const outside = [...online].filter((cpu) => !drawn.has(cpu));
  if (outside.length > 0) root.append(nodeBox("CPUs outside any node", outside));
  const offline = parseSet(machine.present).filter((cpu) => !online.has(cpu) && !drawn.has(cpu));
  if (offline.length > 0) root.append(nodeBox("offline", offline));
  const first = cpuButtons.values().next().value;
  if (first) first.tabIndex = 0;
  drawnMachine = machine;
}

const kKinds = { shared: "shared", reserved: "reserved for the system", offline: "offline or not allowed" };

function describeCpu(cpu, { kind, owner }) {
  if (kind === "exclusive") return `CPU ${cpu}: ${nameOf(owner)} alone`;
  if (kind === "withheld") return `CPU ${cpu}: kept idle for ${nameOf(owner)}`;
  return `CPU ${cpu}: ${kKinds[kind]}`;
}

function drawCpus() {
  const marked = new Set(chosen && shown.containers.has(chosen) ? parseSet(shown.containers.get(chosen).cpus) : []);
  for (const [cpu, entry] of cpuTable(shown)) {
    const button = cpuButtons.get(cpu);
    if (!button) continue;
    const className = `cpu ${entry.kind}${marked.has(cpu) ? " marked" : ""}`;
    const colour = entry.kind === "exclusive" ? colourOf(entry.owner.key.pod_uid) : "";
    if (button.className !== className) button.className = className;
    if (button.style.backgroundColor !== colour) button.style.backgroundColor = colour;
    const label = describeCpu(cpu, entry);
    if (button.title !== label) { button.title = label; button.setAttribute("aria-label", label); }
    button.owner = entry.owner ? keyOf(entry.owner.key) : null;
  }
}

// Table and details

function drawTable() {
  const wanted = find("filter").value.toLowerCase();
  const rows = [...shown.containers.values()].filter((one) => nameOf(one).toLowerCase().includes(wanted));
  rows.sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  const body = find("containers");
  const focused = document.activeElement?.dataset?.key;
  body.replaceChildren(...rows.map((one) => {
    const key = keyOf(one.key);
    const swatch = element("span", { className: "swatch" });
    swatch.style.backgroundColor = one.mode === "exclusive" ? colourOf(one.key.pod_uid) : "";
    const button = element("button", { type: "button", textContent: `${one.pod_namespace}/${one.pod_name}` });
    button.dataset.key = key;
    const row = element("tr", { className: key === chosen ? "marked" : "" }, element("td", {}, swatch, button));
    for (const text of [one.key.name, one.qos, one.mode, one.cpus || "–", one.mems || "–", one.phase]) {
      row.append(element("td", { textContent: text }));
    }
    return row;
  }));
  if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function drawDetails() {
  const root = find("details");
  const one = chosen ? shown.containers.get(chosen) : null;
  if (!one) {
    if (chosen) root.replaceChildren(element("p", { textContent: "This container is not there at this moment." }));
    return;
  }
  const list = element("dl");
  const add = (term, text) => { if (text) list.append(element("dt", { textContent: term }), element("dd", { textContent: text })); };
  add("Container", nameOf(one));
  add("Where", `${one.mode} on CPUs ${one.cpus || "none"}${one.nodes ? `, node ${one.nodes}` : ""}${one.mems ? `, memory of node ${one.mems}` : ""}`);
  add("Why", one.reason);
  add("Requests", one.cpu_request_milli ? `${one.cpu_request_milli / 1000} CPUs` : "no CPU");
  add("Kept idle for it", one.withheld);
  add("Devices", (one.used_devices ?? []).join(", "));
  add("Squeezed", one.squeeze);
  add("Conflict", one.conflict ? "the kubelet's CPUs overlap those of others" : "");
  const event = lastEvents.get(chosen);
  if (event) {
    add("Decision", `${event.decision}: ${event.event}${event.reason_code ? ` (${event.reason_code})` : ""}`);
    for (const candidate of event.candidates ?? []) {
      const said = (candidate.opinions ?? []).map((o) => `${o.policy}: ${o.kind}${o.kind === "score" ? ` ${o.score}` : ""}, ${o.reason}`);
      add(`Candidate: node ${candidate.nodes || "none"}`, `${candidate.rejected ? "rejected" : `score ${candidate.score}`}${said.length ? `; ${said.join("; ")}` : ""}`);
    }
  } else {
    add("Candidates", "its decision was before this page knew of it; topolet explain tells them");
  }
  root.replaceChildren(list);
}

function noteEvents(delta, show) {
  for (const event of delta.events ?? []) {
    if (event.key) lastEvents.set(keyOf(event.key), event);
    if (!show || !kLoudEvents.has(event.event)) continue;
    const list = find("events");
    const time = new Date(delta.time_ms).toLocaleTimeString();
    const who = event.pod_name ? ` ${event.pod_namespace}/${event.pod_name}` : "";
    list.prepend(element("li", { textContent: `${time} ${event.event}${who}: ${event.reason}` }));
    while (list.children.length > kMostEvents) list.lastChild.remove();
  }
}

// Time

function drawStatus() {
  const status = find("status");
  let text = "";
  if (!streaming) text = "no connection to topolet-agent; trying again";
  else if (!live) text = "topolet-agent is not connected to topoletd";
  else if (!connected) text = "topolet-agent has lost topoletd; this is what was known last";
  else if (!live.reconciled) text = "topoletd does not know yet what runs";
  status.classList.toggle("bad", text !== "");
  const count = shown ? shown.containers.size : 0;
  const containers = `${count} container${count === 1 ? "" : "s"}`;
  const message = text || (past ? `the past: ${containers} then` : `${containers}, generation ${live.generation}`);
  if (status.textContent !== message) status.textContent = message;
}

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (!past) shown = live;
    drawStatus();
    if (!shown) return;
    if (drawnMachine !== shown.machine) drawMachine(shown.machine);
    drawCpus();
    drawTable();
    drawDetails();
  });
}

async function showPast(position) {
  if (!past) {
    const answer = await fetch("/api/history");
    past = await answer.json();
    find("moment").max = past.deltas.length;
    for (const delta of past.deltas) noteEvents(delta, false);
  }
  const count = Math.min(position, past.deltas.length);
  if (count === past.deltas.length) return showNow();
  shown = begin(past.base);
  for (const delta of past.deltas.slice(0, count)) apply(shown, delta);
  const time = new Date(count === 0 ? past.base_time_ms : past.deltas[count - 1].time_ms).toLocaleString();
  find("moment-text").textContent = time;
  find("moment").setAttribute("aria-valuetext", time);
  find("now").hidden = false;
  draw();
}

function showNow() {
  past = null;
  const moment = find("moment");
  moment.value = moment.max;
  moment.setAttribute("aria-valuetext", "now");
  find("moment-text").textContent = "now";
  find("now").hidden = true;
  draw();
}

// What moves it

function choose(key) {
  chosen = key;
  draw();
}

find("machine").addEventListener("click", (event) => {
  const owner = event.target.closest(".cpu")?.owner;
  if (owner) choose(owner);
});
find("machine").addEventListener("keydown", (event) => {
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 };
  if (!(event.key in steps) || !event.target.classList.contains("cpu")) return;
  const all = [...cpuButtons.values()];
  const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(event.target) + steps[event.key]))];
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  event.preventDefault();
});
find("containers").addEventListener("click", (event) => {
  const key = event.target.closest("button")?.dataset.key;
  if (key) choose(key);
});
find("filter").addEventListener("input", draw);
find("moment").addEventListener("input", (event) => showPast(Number(event.target.value)));
find("now").addEventListener("click", () => { showNow(); find("moment").focus(); });

const stream = new EventSource("/api/changes");
stream.addEventListener("open", () => { streaming = true; draw(); });
stream.addEventListener("error", () => { streaming = false; draw(); });
stream.addEventListener("connection", (event) => { connected = JSON.parse(event.data).connected; draw(); });
stream.addEventListener("state", (event) => {
  live = begin(JSON.parse(event.data));
  const moment = find("moment");
  moment.disabled = false;
  if (!past) { moment.max = 1; moment.value = 1; }
  draw();
});
stream.addEventListener("delta", (event) => {
  const delta = JSON.parse(event.data);
  apply(live, delta);
  noteEvents(delta, true);
  draw();
});
