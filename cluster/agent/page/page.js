import { apply, begin, colourOf, cpuTable, holdsAlone, keyOf, parseSet } from "./node.js";

const find = (id) => document.getElementById(id);
const kMostEvents = 50;
const kLoudEvents = new Set(["denied", "re-placed", "squeezed", "drift", "gap", "conflict", "quarantined", "unpinned"]);

let live = null;       // the node as it is now
let shown = null;      // as it is drawn: live, or a moment of the past
let timeline = null;   // { base, base_time_ms, deltas }: the last hour
let past = null;       // { events } while the slider is away from now
let connected = null;  // to topoletd; null: not told yet
let streaming = false;
let chosen = null;     // the key of the container whose details are shown
let drawing = false;
const lastEvents = new Map();  // by key: the newest decision that was told of it
const rows = new Map();        // of the table, by key
const kTablePauseMs = 200;
const kReconnectMs = 2000;
const kManyCpus = 512;
let tableDrawnAt = 0;
let tableTimer = null;
let detailsOf = [];            // what the details were made of
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
  const devicesBy = new Map();
  for (const device of machine.devices ?? []) {
    const place = /^\d+$/.test(device.nodes) ? device.nodes : "elsewhere";
    devicesBy.set(place, [...(devicesBy.get(place) ?? []), device]);
  }
  root.classList.toggle("many", parseSet(machine.present).length > kManyCpus);
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
    const devices = devicesBy.get(title.match(/^node (\d+):/)?.[1]) ?? [];
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
  root.prepend(...places.map((place) => place.box));
  const outside = [...online].filter((cpu) => !drawn.has(cpu));
  if (outside.length > 0) root.append(nodeBox("CPUs outside any node", outside));
  const offline = parseSet(machine.present).filter((cpu) => !online.has(cpu) && !drawn.has(cpu));
  if (offline.length > 0) root.append(nodeBox("offline", offline));
  const elsewhere = devicesBy.get("elsewhere") ?? [];
  if (elsewhere.length > 0) {
    root.append(element("p", { className: "name",
      textContent: `devices of several nodes or none: ${elsewhere.map((one) => one.name).join(", ")}` }));
  }
  const first = cpuButtons.values().next().value;
  if (first) first.tabIndex = 0;
  drawnMachine = machine;
}

const kKinds = { shared: "shared", reserved: "reserved for the system", isolated: "isolated by the kernel", offline: "offline or not allowed" };

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

function makeRow(key) {
  const swatch = element("span", { className: "swatch" });
  const button = element("button", { type: "button" });
  button.dataset.key = key;
  const cells = [element("td", {}, swatch, button), ...Array.from({ length: 6 }, () => element("td"))];
  return { row: element("tr", {}, ...cells), swatch, button, cells, of: null, isChosen: false };
}

/** Rows stay the same elements, so that whoever is about to press one does. */
function fillRow(made, one, isChosen) {
  if (made.of === one && made.isChosen === isChosen) return;
  made.of = one;
  made.isChosen = isChosen;
  made.row.className = isChosen ? "marked" : "";
  made.swatch.style.backgroundColor = holdsAlone(one) ? colourOf(one.key.pod_uid) : "";
  const texts = [one.key.name, one.qos, one.mode, one.cpus || "–", one.mems || "–", one.phase];
  const name = `${one.pod_namespace}/${one.pod_name}`;
  if (made.button.textContent !== name) made.button.textContent = name;
  texts.forEach((text, i) => { if (made.cells[i + 1].textContent !== text) made.cells[i + 1].textContent = text; });
}

function drawTable() {
  tableDrawnAt = performance.now();
  const wanted = find("filter").value.toLowerCase();
  const body = find("containers");
  for (const [key, made] of rows) {
    if (shown.containers.has(key)) continue;
    made.row.remove();
    rows.delete(key);
  }
  for (const [key, one] of shown.containers) {
    if (!rows.has(key)) {
      const made = makeRow(key);
      const name = nameOf(one);
      const after = [...body.children].find((row) => row.name.localeCompare(name) > 0) ?? null;
      made.row.name = name;
      body.insertBefore(made.row, after);
      rows.set(key, made);
    }
    const made = rows.get(key);
    fillRow(made, one, key === chosen);
    const hidden = !made.row.name.toLowerCase().includes(wanted);
    if (made.row.hidden !== hidden) made.row.hidden = hidden;
  }
}

/** A table of hundreds of rows is not drawn for each of many changes. */
function drawTableSoon() {
  if (tableTimer !== null) return;
  const pause = Math.max(0, kTablePauseMs - (performance.now() - tableDrawnAt));
  tableTimer = setTimeout(() => { tableTimer = null; if (shown) drawTable(); }, pause);
}

function drawDetails() {
  const root = find("details");
  const one = chosen ? shown.containers.get(chosen) : null;
  const event = chosen ? (past?.events ?? lastEvents).get(chosen) : null;
  if (detailsOf[0] === chosen && detailsOf[1] === one && detailsOf[2] === event) return;
  detailsOf = [chosen, one, event];
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
  if (connected === null) text = "connecting…";
  else if (!streaming) text = "no connection to topolet-agent; trying again";
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
    drawTableSoon();
    drawDetails();
  });
}

/** In seconds; the slider begins where the hour does, and ends now. */
function setRange() {
  const moment = find("moment");
  moment.disabled = timeline === null;
  if (timeline === null || past) return;
  moment.min = Math.floor(timeline.base_time_ms / 1000);
  moment.max = Math.floor(Date.now() / 1000);
  moment.value = moment.max;
}

async function loadTimeline() {
  timeline = null;
  setRange();
  try {
    const loaded = await (await fetch("/api/history")).json();
    // What the stream tells meanwhile is in it, or comes after.
    timeline = loaded;
    for (const delta of loaded.deltas) noteEvents(delta, false);
  } catch {
    // The page goes on without a past.
  }
  setRange();
  draw();
}

function showPast(seconds) {
  const moment = find("moment");
  if (!timeline || seconds >= Number(moment.max)) return showNow();
  past = { events: new Map() };
  shown = begin(timeline.base);
  for (const delta of timeline.deltas) {
    if (delta.time_ms > seconds * 1000) break;
    apply(shown, delta);
    for (const event of delta.events ?? []) if (event.key) past.events.set(keyOf(event.key), event);
  }
  const time = new Date(seconds * 1000).toLocaleString();
  find("moment-text").textContent = time;
  moment.setAttribute("aria-valuetext", time);
  find("now").hidden = false;
  draw();
}

function showNow() {
  past = null;
  setRange();
  find("moment").setAttribute("aria-valuetext", "now");
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

function follow() {
  const stream = new EventSource("/api/changes");
  stream.addEventListener("open", () => { streaming = true; draw(); });
  stream.addEventListener("error", () => {
    streaming = false;
    draw();
    // A browser tries again by itself only where the connection broke, not where it was refused.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, kReconnectMs);
  });
  stream.addEventListener("connection", (event) => { connected = JSON.parse(event.data).connected; draw(); });
  stream.addEventListener("state", (event) => {
    live = begin(JSON.parse(event.data));
    loadTimeline();
    draw();
  });
  stream.addEventListener("delta", (event) => {
    const delta = JSON.parse(event.data);
    apply(live, delta);
    const known = timeline?.deltas.at(-1)?.generation ?? timeline?.base.generation ?? 0;
    if (timeline && delta.generation >= known) timeline.deltas.push(delta);
    noteEvents(delta, true);
    draw();
  });
}

follow();
setInterval(setRange, 5000);
