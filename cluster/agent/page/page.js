// Puts the parts together: what the agent tells, the moment that is looked at, and what is chosen.
import { Details } from "./details.js";
import { atMostOncePer, element, find, setText } from "./dom.js";
import { EventList } from "./events.js";
import { IllnessBand } from "./illness.js";
import { MachineMap } from "./machine.js";
import { apply, begin, keyOf, parseSet } from "./node.js";
import { ContainerTable } from "./table.js";
import { Timeline } from "./timeline.js";

const kDrawPauseMs = 250;
const kReconnectMs = 2000;
const kRangePauseMs = 5000;

let live = null;       // the node as it is now
let timeline = null;   // null until it was loaded, or if it cannot be
let past = null;       // {node, decisions} while the slider is away from now
let sliderEndMs = 0;   // the time at which the slider ends
let connected = null;  // the agent to topoletd; null: not told yet
let agent = { version: "", node: "", illnesses: [] };  // what topolet-agent says of itself, and what is ill now
let streaming = false;
let chosen = null;     // {container: key} or {cpu: number}, and who has the focus again after it
const decisions = new Map();  // by container: the newest decision that was told

let load = null;       // what is measured now; null: the agent was never told

const shown = () => past?.node ?? live;

/** Only of now: what was measured is not in the history. */
const shownLoad = () => (find("show-load").checked && !past && connected ? load : null);

function drawLoadChoice() {
  find("load-choice").hidden = load === null;
  const isShown = shownLoad() !== null;
  const isKnown = load !== null && Object.keys(load.cpus).length > 0;
  const notes = [];
  if (isShown && !isKnown) notes.push("nothing is measured now");
  if (isShown && isKnown && !load.is_settled) notes.push("measured for less than a minute: nobody decides by it yet");
  if (find("show-load").checked && past) notes.push("what was measured then is not kept");
  find("load-notes").hidden = notes.length === 0;
  setText(find("load-notes"), notes.join("; "));
}

// Choosing

/** Selects an element. With the keyboard, the focus moves to the details, and back with Escape. */
function choose(what, goBack, byKeyboard) {
  chosen = { ...what, goBack: chosen && !goBack ? chosen.goBack : goBack };
  draw();
  if (byKeyboard) find("details-title").focus();
}

const chooseContainer = (key, byKeyboard, goBack = null) => choose({ container: key }, goBack, byKeyboard);

function close() {
  if (!chosen) return;
  const { goBack } = chosen;
  const isInside = find("what").contains(document.activeElement) || document.activeElement === document.body;
  chosen = null;
  draw();
  if (isInside) goBack?.();
}

const map = new MachineMap(find("machine"), (cpu, owner, byKeyboard) => {
  const goBack = () => map.focusOn(cpu);
  if (owner) chooseContainer(owner, byKeyboard, goBack); else choose({ cpu }, goBack, byKeyboard);
});
const table = new ContainerTable((key, byKeyboard) => chooseContainer(key, byKeyboard, () => table.focusOn(key)));
const details = new Details(chooseContainer);
const events = new EventList();
const band = new IllnessBand();
find("close").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  if (event.target === find("filter") && event.target.value) return;
  if (event.target === find("moment") && past) showNow(); else close();
});

// Drawing

/** Shows the names of the machine, of topoletd and of the agent. */
function drawNames() {
  const host = live?.host || agent.node;
  setText(find("host"), host ? ` on ${host}` : "");
  const title = host ? `topolet: ${host}` : "topolet: this node";
  if (document.title !== title) document.title = title;
  const daemon = shown()?.version;
  const both = [daemon && `topoletd ${daemon}`, agent.version && agent.version !== daemon && `topolet-agent ${agent.version}`];
  setText(find("versions"), both.filter(Boolean).join(", "));
}

function illnessesNow() {
  if (streaming) return agent.illnesses;
  return [{ severity: "critical", subject: "topolet-agent", sentence: "it does not answer, so that nobody can tell", count: 1 }];
}

const illnessesThen = (node) => (node.connected === false
  ? [{ severity: "critical", subject: "topoletd", sentence: "it was not connected", count: 1 }]
  : node.illnesses ?? []);

function drawStatus() {
  let text = "";
  if (connected === null) text = streaming ? "connecting…" : "no connection to topolet-agent; trying again";
  else if (!streaming) text = "no connection to topolet-agent; trying again";
  else if (!live) text = "topolet-agent is not connected to topoletd";
  else if (!connected) text = "topolet-agent has lost topoletd; this is what was known last";
  else if (!live.reconciled) text = "topoletd does not know yet what runs";
  find("status").classList.toggle("bad", text !== "");
  const pastText = past?.node.connected === false ? "the past; topoletd was not connected then" : "the past";
  setText(find("status"), text || (past ? pastText : "live"));
  drawNames();
  band.show(past ? illnessesThen(past.node) : illnessesNow());
  const node = shown();
  if (!node) return;
  const count = node.containers.size;
  setText(find("summary"), `${count} container${count === 1 ? "" : "s"}, generation ${node.generation}`);
}

function markedCpus(node) {
  if (chosen?.cpu !== undefined) return new Set([chosen.cpu]);
  return new Set(parseSet(chosen && node.containers.get(chosen.container)?.cpus));
}

function draw() {
  drawStatus();
  events.draw();
  const node = shown();
  if (!node) return;
  drawLoadChoice();
  map.show(node, markedCpus(node), shownLoad());
  table.show(node.containers, chosen?.container);
  details.show(node, chosen, past?.decisions ?? decisions);
}

let frame = null;
/** All in one frame, as each one costs; and none while nobody looks. */
const drawSoon = atMostOncePer(kDrawPauseMs, () => {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    draw();
  });
});

// Time

/** In seconds; the slider begins where the hour does, and ends at 0, which is now. */
function setRange() {
  const moment = find("moment");
  moment.disabled = timeline === null;
  if (timeline === null || past) return;
  sliderEndMs = Date.now();
  timeline.forgetBefore(sliderEndMs);
  moment.min = Math.min(0, Math.ceil((timeline.baseTimeMs - sliderEndMs) / 1000));
  moment.value = 0;
  find("marks").replaceChildren(...timeline.marks().map(({ timeMs, text }) =>
    element("option", { value: Math.round((timeMs - sliderEndMs) / 1000), label: text })));
}

async function loadTimeline() {
  timeline = null;
  setRange();
  try {
    timeline = new Timeline(await (await fetch("/api/history")).json());
    events.clear();
    for (const delta of timeline.deltas) noteEvents(delta, false);
  } catch {
    // The page goes on without a past.
  }
  if (past) drawSoon(); else showNow();
}

function showPast(seconds) {
  if (!timeline || seconds >= 0) return showNow();
  const timeMs = sliderEndMs + seconds * 1000;
  past = timeline.at(timeMs);
  const time = new Date(timeMs).toLocaleString();
  setText(find("moment-text"), time);
  find("moment").setAttribute("aria-valuetext", time);
  find("now").hidden = false;
  drawSoon();
}

function showNow() {
  past = null;
  setRange();
  find("moment").setAttribute("aria-valuetext", "now");
  setText(find("moment-text"), "now");
  find("now").hidden = true;
  drawSoon();
}

find("moment").addEventListener("input", (event) => showPast(Number(event.target.value)));
find("show-load").addEventListener("change", drawSoon);
find("now").addEventListener("click", () => { showNow(); find("moment").focus(); });

// Messages from the agent

function noteEvents(delta, isNew) {
  for (const event of delta.events ?? []) {
    if (event.key) decisions.set(keyOf(event.key), event);
    events.add(delta.time_ms, event, isNew);
  }
  for (const key of delta.ended ?? []) decisions.delete(keyOf(key));
}

function take(delta) {
  apply(live, delta);
  if (!timeline?.has(delta)) {
    timeline?.add(delta);
    noteEvents(delta, true);
  }
  drawSoon();
}

function follow() {
  const stream = new EventSource("/api/changes");
  const on = (name, handle) => stream.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  stream.addEventListener("open", () => { streaming = true; drawSoon(); });
  stream.addEventListener("error", () => {
    streaming = false;
    drawSoon();
    // A browser tries again by itself only where the connection broke, not where it was refused.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, kReconnectMs);
  });
  on("connection", (told) => { connected = told.connected; drawSoon(); });
  on("agent", (told) => { agent = told; drawSoon(); });
  on("state", (state) => {
    live = begin(state);
    decisions.clear();
    loadTimeline();
  });
  on("delta", take);
  on("load", (told) => { load = told; drawSoon(); });
}

follow();
setInterval(setRange, kRangePauseMs);
