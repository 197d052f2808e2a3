// The map of the machine: packages, nodes, last-level caches, cores, CPUs, devices.
import { element, nameOf, setAttribute } from "./dom.js";
import { colourOf, cpuTable, keyOf, parseSet } from "./node.js";

const kManyCpus = 512;
const kKinds = { shared: "shared", reserved: "reserved for the system", isolated: "isolated by the kernel",
  offline: "offline or not allowed" };

export function describeCpu(cpu, { kind, owner }) {
  if (kind === "exclusive") return `CPU ${cpu}: ${nameOf(owner)} alone`;
  if (kind === "lost") return `CPU ${cpu}: given to ${nameOf(owner)} alone, and ${owner.mode} now`;
  if (kind === "withheld") return `CPU ${cpu}: kept idle for ${nameOf(owner)}`;
  return `CPU ${cpu}: ${kKinds[kind]}`;
}

function titleOf(node) {
  const memory = node.memory_bytes ? `${Math.round(node.memory_bytes / 2 ** 30)} GiB` : "memory unknown";
  return `node ${node.os_index}: ${memory}${node.memory_only ? ", no CPUs" : ""}`;
}

function box(className, title) {
  const made = element("div", { className }, element("p", { className: "name", textContent: title }));
  made.setAttribute("role", "group");
  made.setAttribute("aria-label", title);
  return made;
}

const cpus = (milli) => (milli / 1000).toFixed(2);

/** What is measured of a CPU, for people; empty if nothing is known. */
export function describeCpuLoad(measured) {
  if (measured?.used_milli === undefined) return "";
  const lost = measured.effective_milli === undefined ? 0 : 1000 - measured.effective_milli;
  return `, ${Math.round(measured.used_milli / 10)} % used${lost >= 10 ? `, ${Math.round(lost / 10)} % taken by the hypervisor` : ""}`;
}

/** The same of a node with so many CPUs. */
export function describeNodeLoad(measured, count) {
  if (measured?.used_milli === undefined) return "";
  const able = measured.effective_milli === undefined ? "" : `, ${cpus(measured.effective_milli)} effective`;
  return `; ${cpus(measured.used_milli)} of ${count} CPUs used${able}`;
}

/** Groups devices by node; "elsewhere": devices on several nodes or none. */
function devicesByPlace(machine) {
  const places = new Map();
  for (const device of machine.devices ?? []) {
    const place = /^\d+$/.test(device.nodes) ? device.nodes : "elsewhere";
    places.set(place, [...(places.get(place) ?? []), device.name]);
  }
  return places;
}

export class MachineMap {
  /** `onChoose(cpu, ownerKey, byKeyboard)`: a CPU was chosen; ownerKey: the container that has it alone, or null. */
  constructor(root, onChoose) {
    this.root = root;
    this.buttons = new Map();
    this.nodes = [];
    this.machine = null;
    root.addEventListener("click", (event) => {
      const button = event.target.closest(".cpu");
      if (!button) return;
      this.moveTo(button);
      onChoose(Number(button.dataset.cpu), button.owner, event.detail === 0);
    });
    root.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Draws `node`. `marked`: the CPUs to be made out from the others. `load`: what is measured; null: it is not shown. */
  show(node, marked, load = null) {
    if (this.machine !== node.machine) this.build(node.machine);
    this.showNodeLoads(load);
    for (const [cpu, entry] of cpuTable(node)) {
      const button = this.buttons.get(cpu);
      if (!button) continue;
      const isMarked = marked.has(cpu);
      const measured = load?.cpus[cpu];
      const isMeasured = measured?.used_milli !== undefined;
      const className = `cpu ${entry.kind}${isMarked ? " marked" : ""}${isMeasured ? " measured" : ""}`;
      const colour = entry.kind === "exclusive" ? colourOf(entry.owner.key.pod_uid) : "";
      if (button.className !== className) button.className = className;
      // Reading a style back costs more than all the rest.
      if (button.colour !== colour) button.style.backgroundColor = button.colour = colour;
      const share = isMeasured ? `${Math.min(100, Math.round(measured.used_milli / 10))}%` : "";
      if ((button.share ?? "") !== share) button.style.setProperty("--used", button.share = share);
      const label = describeCpu(cpu, entry) + describeCpuLoad(measured);
      if (button.title !== label) button.title = label;
      setAttribute(button, "aria-label", isMarked ? `${label}, of what is chosen` : label);
      button.owner = entry.owner ? keyOf(entry.owner.key) : null;
    }
  }

  showNodeLoads(load) {
    for (const { made, title, osIndex, count } of this.nodes) {
      const text = title + describeNodeLoad(load?.nodes[osIndex], count);
      const name = made.firstChild;
      if (name.textContent === text) continue;
      name.textContent = text;
      made.setAttribute("aria-label", text);
    }
  }

  focusOn(cpu) { this.buttons.get(cpu)?.focus(); }

  build(machine) {
    const focused = document.activeElement?.dataset?.cpu;
    this.machine = machine;
    this.buttons.clear();
    this.drawn = new Set();
    this.nodes = [];
    this.root.classList.toggle("many", parseSet(machine.present || machine.online).length > kManyCpus);
    const devices = devicesByPlace(machine);
    const packages = (machine.packages ?? []).map((text, number) =>
      ({ cpus: new Set(parseSet(text)), box: box("package", `package ${number}`) }));
    const rest = [];
    for (const node of machine.nodes ?? []) {
      const cpus = node.memory_only ? [] : parseSet(node.cpus);
      const place = packages.find((one) => cpus.some((cpu) => one.cpus.has(cpu)));
      const made = this.nodeBox(titleOf(node), cpus, devices.get(String(node.os_index)));
      this.nodes.push({ made, title: titleOf(node), osIndex: node.os_index, count: cpus.length });
      if (place) place.box.append(made); else rest.push(made);
    }
    const online = new Set(parseSet(machine.online));
    const addRest = (title, cpus) => { if (cpus.length > 0) rest.push(this.nodeBox(title, cpus)); };
    addRest("CPUs outside any node", [...online].filter((cpu) => !this.drawn.has(cpu)));
    addRest("offline", parseSet(machine.present).filter((cpu) => !online.has(cpu) && !this.drawn.has(cpu)));
    if (devices.has("elsewhere")) {
      rest.push(element("p", { className: "name",
        textContent: `devices of several nodes or none: ${devices.get("elsewhere").join(", ")}` }));
    }
    this.root.replaceChildren(...packages.map((one) => one.box), ...rest);
    const current = this.buttons.get(Number(focused)) ?? this.buttons.values().next().value;
    if (current) current.tabIndex = 0;
    if (focused !== undefined) current?.focus();
  }

  nodeBox(title, cpus, devices = []) {
    const made = box("node", title);
    const wanted = new Set(cpus);
    for (const cache of (this.machine.l3s ?? []).map(parseSet)) {
      const here = cache.filter((cpu) => wanted.has(cpu) && !this.drawn.has(cpu));
      if (here.length > 0) made.append(element("span", { className: "cache" }, ...this.coreBoxes(here)));
    }
    const rest = cpus.filter((cpu) => !this.drawn.has(cpu));
    if (rest.length > 0) made.append(element("span", { className: "cache" }, ...this.coreBoxes(rest)));
    if (devices.length > 0) made.append(element("p", { className: "name", textContent: devices.join(", ") }));
    return made;
  }

  coreBoxes(cpus) {
    const wanted = new Set(cpus);
    const boxes = [];
    for (const core of (this.machine.cores ?? []).map(parseSet)) {
      const here = core.filter((cpu) => wanted.has(cpu) && !this.drawn.has(cpu));
      if (here.length > 0) boxes.push(element("span", { className: "core" }, ...here.map((cpu) => this.button(cpu))));
    }
    for (const cpu of cpus) if (!this.drawn.has(cpu)) boxes.push(this.button(cpu));
    return boxes;
  }

  button(cpu) {
    const made = element("button", { type: "button", className: "cpu", textContent: cpu, tabIndex: -1 });
    made.dataset.cpu = cpu;
    this.buttons.set(cpu, made);
    this.drawn.add(cpu);
    return made;
  }

  /** One CPU only is reached by the tab key; from there, arrow keys lead to the others. */
  moveTo(button) {
    const former = this.root.querySelector('.cpu[tabindex="0"]');
    if (former) former.tabIndex = -1;
    button.tabIndex = 0;
  }

  onKey(event) {
    const from = event.target.closest(".cpu");
    if (!from || event.ctrlKey || event.altKey || event.metaKey) return;
    const next = this.nextOf(from, event.key);
    if (next === undefined) return;
    event.preventDefault();
    if (!next) return;
    this.moveTo(next);
    next.focus();
  }

  /** Undefined: the key is none of the map's; null: there is nothing there. */
  nextOf(from, key) {
    const all = [...this.root.querySelectorAll(".cpu")];
    const at = all.indexOf(from);
    switch (key) {
      case "ArrowRight": return all[at + 1] ?? null;
      case "ArrowLeft": return all[at - 1] ?? null;
      case "Home": return all[0];
      case "End": return all.at(-1);
      case "ArrowDown": return nearest(from, all, 1);
      case "ArrowUp": return nearest(from, all, -1);
      case "PageDown": return firstOfOtherNode(from, all.slice(at));
      case "PageUp": return firstOfOtherNode(from, all.slice(0, at).reverse());
      default: return undefined;
    }
  }
}

function firstOfOtherNode(from, others) {
  const node = from.closest(".node");
  const other = others.find((one) => one.closest(".node") !== node)?.closest(".node");
  return other?.querySelector(".cpu") ?? null;
}

/** Returns the nearest element below (or above) that is hardly to the side. */
function nearest(from, all, direction) {
  const middle = (one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [left + width / 2, top + height / 2, height];
  };
  const [x, y, height] = middle(from);
  let best = null;
  let least = Infinity;
  for (const one of all) {
    const [otherX, otherY] = middle(one);
    const down = (otherY - y) * direction;
    if (down < height / 2) continue;
    const distance = down + 2 * Math.abs(otherX - x);
    if (distance < least) [best, least] = [one, distance];
  }
  return best;
}
