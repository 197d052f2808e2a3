// The node as the agent tells of it; nothing here knows of the page.

const kMostParsed = 4096;
const parsed = new Map();

function parse(text) {
  const numbers = [];
  for (const part of text.split(",")) {
    if (part === "") continue;
    const [first, last] = part.split("-").map(Number);
    for (let number = first; number <= (last ?? first); ++number) numbers.push(number);
  }
  return numbers;
}

/** The numbers of a list as the kernel writes it, "0-3,8". Not to be changed: the same list is given out again. */
export function parseSet(text) {
  const key = text || "";
  let numbers = parsed.get(key);
  if (numbers) return numbers;
  numbers = parse(key);
  if (parsed.size >= kMostParsed) parsed.clear();
  parsed.set(key, numbers);
  return numbers;
}

export const keyOf = (key) => [key.pod_uid, key.name, key.attempt ?? 0, key.sandbox_id].join("\n");

/** A state that deltas can be applied to; it shares nothing that changes with the message. */
export function begin(state) {
  return { ...state, containers: new Map((state.containers ?? []).map((one) => [keyOf(one.key), one])) };
}

export const copyOf = (node) => ({ ...node, containers: new Map(node.containers) });

export function apply(node, delta) {
  node.generation = delta.generation;
  for (const one of delta.changed ?? []) node.containers.set(keyOf(one.key), one);
  for (const key of delta.ended ?? []) node.containers.delete(keyOf(key));
  for (const field of ["cpus", "machine", "plugins", "reconciled", "illnesses", "connected", "instance", "version", "host"]) {
    if (field in delta) node[field] = delta[field];
  }
}

/** Its CPUs are nobody else's: topolet gave them to it alone, or somebody else did. */
export const holdsAlone = (one) => one.mode === "exclusive" || one.mode === "foreign";

/** It was given CPUs to have alone, and was seen not to have them so now. */
export const hasLostAlone = (one) => ["overruled", "drifted", "overlapped"].includes(one.mode);

/** Returns, for each CPU of the machine, the containers that have it and how they use it. */
export function cpuTable(node) {
  const table = new Map();
  const online = new Set(parseSet(node.machine.online));
  for (const cpu of parseSet(node.machine.present || node.machine.online)) {
    table.set(cpu, { kind: online.has(cpu) ? "unknown" : "offline", owner: null });
  }
  const set = (text, kind, owner) => {
    for (const cpu of parseSet(text)) {
      const entry = table.get(cpu);
      if (!entry || entry.kind === "offline") continue;
      entry.kind = kind;
      entry.owner = owner;
    }
  };
  set(node.cpus.pool, "shared", null);
  set(node.cpus.reserved, "reserved", null);
  set(node.cpus.isolated, "isolated", null);
  for (const one of node.containers.values()) set(one.withheld, "withheld", one);
  for (const one of node.containers.values()) if (holdsAlone(one)) set(one.cpus, "exclusive", one);
  for (const one of node.containers.values()) if (hasLostAlone(one)) set(one.cpus, "lost", one);
  for (const entry of table.values()) if (entry.kind === "unknown") entry.kind = "offline";
  return table;
}

/** Returns a pod's colour, always the same for the same pod: a hue that black text can be read on. */
export function colourOf(uid) {
  let hash = 2166136261;
  for (const letter of uid) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
  return `hsl(${hash % 360} 65% ${68 + (hash >>> 9) % 12}%)`;
}
