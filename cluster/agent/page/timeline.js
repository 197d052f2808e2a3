// The last hour: what the node was before it, and each change since.
import { apply, begin, copyOf, keyOf } from "./node.js";

const kSpanMs = 3600 * 1000;

export class Timeline {
  /** `told`: what the agent has told, {base, base_time_ms, deltas}. */
  constructor(told) {
    this.base = begin(told.base);
    this.baseTimeMs = told.base_time_ms;
    this.deltas = [...told.deltas];
  }

  /** A change that the stream tells may be in what was told at the beginning. */
  has(delta) {
    for (let i = this.deltas.length - 1; i >= 0 && this.deltas[i].generation >= delta.generation; --i) {
      if (JSON.stringify(this.deltas[i]) === JSON.stringify(delta)) return true;
    }
    return delta.generation < (this.deltas.at(-1)?.generation ?? this.base.generation);
  }

  add(delta) { this.deltas.push(delta); }

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
