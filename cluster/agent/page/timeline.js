// The last hour: the node's state before it, and each change since, also where another topoletd sent it.
import { apply, begin, copyOf, keyOf } from "./node.js";

const kSpanMs = 3600 * 1000;

export class Timeline {
  /** `told`: what the agent has told, {base, base_time_ms, connected, number, deltas}. */
  constructor(told) {
    this.base = begin({ ...told.base, connected: told.connected });
    this.newest = told.number;
    this.baseTimeMs = told.base_time_ms;
    this.deltas = [...told.deltas];
  }

  /** Returns true if a change from the stream was already in the history that was loaded at the beginning. */
  has(delta) { return delta.number <= this.newest; }

  add(delta) {
    this.newest = delta.number;
    this.deltas.push(delta);
  }

  /** When the connection to topoletd began or ended, and what is said of that. */
  marks() {
    return this.deltas.filter((delta) => "connected" in delta).map((delta) => ({
      timeMs: delta.time_ms, text: (delta.events ?? []).map((event) => event.event).join(", ") }));
  }

  forgetBefore(nowMs) {
    let old = 0;
    while (old < this.deltas.length && this.deltas[old].time_ms < nowMs - kSpanMs) {
      apply(this.base, this.deltas[old]);
      this.baseTimeMs = this.deltas[old].time_ms;
      ++old;
    }
    if (old > 0) this.deltas.splice(0, old);
  }

  /** The node as it was, and the newest decision on each container by then. */
  at(timeMs) {
    const node = copyOf(this.base);
    const decisions = new Map();
    for (const delta of this.deltas) {
      if (delta.time_ms > timeMs) break;
      apply(node, delta);
      for (const event of delta.events ?? []) if (event.key) decisions.set(keyOf(event.key), event);
    }
    return { node, decisions };
  }
}
