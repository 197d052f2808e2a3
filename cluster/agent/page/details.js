// The details of the selected container or CPU.
import { element, find, nameOf } from "./dom.js";
import { cpuTable, holdsAlone, keyOf, parseSet } from "./node.js";
import { describeCpu } from "./machine.js";

const kMostListed = 100;

function wordsOf(opinion) {
  const score = opinion.kind === "score" ? ` ${opinion.score}` : "";
  return `${opinion.policy}: ${opinion.kind}${score}, ${opinion.reason}`;
}

function requestOf({ cpu_request_milli: milli, cpu_request_certainty: certainty }) {
  if (!milli) return "no CPU";
  const cpus = `${milli / 1000} CPU${milli === 1000 ? "" : "s"}`;
  if (certainty === "unknown") return `not known; it counts as ${cpus}`;
  return certainty === "estimated" ? `at most ${cpus}` : cpus;
}

function containerDetails(one, decision) {
  const list = element("dl");
  const add = (term, text) => {
    if (text) list.append(element("dt", { textContent: term }), element("dd", { textContent: text }));
  };
  add("Container", nameOf(one));
  add("Where", `${one.mode} on CPUs ${one.cpus || "none"}${one.nodes ? `, node ${one.nodes}` : ""}${one.mems ? `, memory of node ${one.mems}` : ""}`);
  add("Why", one.reason);
  add("Requests", requestOf(one));
  add("Kept idle for it", one.withheld);
  add("Devices", (one.used_devices ?? []).join(", "));
  add("Squeezed", one.squeeze);
  add("Overruled", one.overruled_since_ms ? "something else than topolet sets its CPUs" : "");
  add("Cannot be moved", one.stuck_on ? `off CPUs ${one.stuck_on}` : "");
  add("Seen on", one.seen_on ? `CPUs ${one.seen_on}, where it should not be` : "");
  add("Others on its CPUs", one.overlapped);
  add("Conflict", one.conflict ? "the kubelet's CPUs overlap those of others" : "");
  if (!decision) {
    add("Candidates", "its decision was before this page knew of it; topolet explain tells them");
    return list;
  }
  add("Decision", `${decision.decision}: ${decision.event}${decision.reason_code ? ` (${decision.reason_code})` : ""}`);
  for (const candidate of decision.candidates ?? []) {
    const verdict = candidate.rejected ? "rejected" : `score ${candidate.score}`;
    add(`Candidate: node ${candidate.nodes || "none"}`,
      [verdict, ...(candidate.opinions ?? []).map(wordsOf)].join("; "));
  }
  return list;
}

function cpuDetails(cpu, node) {
  const entry = cpuTable(node).get(cpu);
  if (!entry) return element("p", { textContent: `CPU ${cpu} is not there at this moment.` });
  const list = element("dl", {}, element("dt", { textContent: "CPU" }),
    element("dd", { textContent: describeCpu(cpu, entry) }));
  const sharing = [...node.containers.values()].filter((one) => !holdsAlone(one) && parseSet(one.cpus).includes(cpu));
  if (entry.kind !== "shared") return list;
  list.append(element("dt", { textContent: `Containers that may run on it: ${sharing.length}` }));
  const names = element("ul", { className: "names" });
  for (const one of sharing.slice(0, kMostListed)) {
    const button = element("button", { type: "button", textContent: nameOf(one) });
    button.dataset.key = keyOf(one.key);
    names.append(element("li", {}, button));
  }
  if (sharing.length > kMostListed) names.append(element("li", { textContent: "and others" }));
  if (sharing.length > 0) list.append(element("dd", {}, names));
  return list;
}

export class Details {
  /** `onChoose(key, byKeyboard)`: a container was chosen in them. */
  constructor(onChoose) {
    this.root = find("details");
    this.made = [];
    this.root.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key) onChoose(key, event.detail === 0);
    });
  }

  /** `chosen`: null, {container: key} or {cpu: number}. `decisions`: the newest that is known, by container. */
  show(node, chosen, decisions) {
    find("close").hidden = !chosen;
    const one = chosen?.container ? node.containers.get(chosen.container) : null;
    const decision = one ? decisions.get(chosen.container) : null;
    const ofCpu = chosen?.cpu !== undefined ? node.generation : null;
    const made = [chosen, one, decision, ofCpu];
    if (this.made.length > 0 && made.every((part, i) => part === this.made[i])) return;
    const isOther = this.made[0] !== chosen;
    this.made = made;
    const next = this.contentOf(node, chosen, one, decision);
    // The same content stays, so that a reader is not thrown out of it by changes elsewhere.
    if (!isOther && this.root.firstElementChild?.isEqualNode(next)) return;
    this.root.replaceChildren(next);
  }

  contentOf(node, chosen, one, decision) {
    if (!chosen) return element("p", { textContent: "Choose a container in the table or a CPU in the machine." });
    if (chosen.cpu !== undefined) return cpuDetails(chosen.cpu, node);
    if (!one) return element("p", { textContent: "This container is not there at this moment." });
    return containerDetails(one, decision);
  }
}
