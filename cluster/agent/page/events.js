// The newest events: listed, and announced to readers who do not see the list.
import { atMostOncePer, element, find } from "./dom.js";

const kTrouble = new Set(["denied", "overlap", "overruled", "stuck", "squeezed", "drift", "gap", "conflict",
  "quarantined", "unpinned", "store-damaged", "disconnected", "restarted"]);
const kMostOfAKind = 50;  // of those that may need somebody, and of the others
const kMostUndrawn = 1000;
const kAnnouncePauseMs = 10000;
const kAnnounceDelayMs = 1000;  // what comes at once is one sentence

// Events that the agent adds about its connection. Their subject is topoletd.
const kMarks = new Set(["disconnected", "reconnected", "restarted"]);
const subjectOf = (event) => (kMarks.has(event.event) ? " topoletd" : event.pod_name ? ` ${event.pod_namespace}/${event.pod_name}` : "");
const textOf = (event) => `${event.event}${subjectOf(event)}: ${event.reason}`;

/** One sentence about all of them, those that may need somebody first. */
export function sentenceAbout(events) {
  if (events.length === 1) return textOf(events[0]);
  const counts = new Map();
  for (const { event } of events) counts.set(event, (counts.get(event) ?? 0) + 1);
  const parts = [...counts].sort(([a], [b]) => kTrouble.has(b) - kTrouble.has(a)).map(([word, count]) => `${count} ${word}`);
  return `${events.length} events: ${parts.join(", ")}`;
}

export class EventList {
  constructor() {
    this.list = find("events");
    this.shown = [];   // of the list, the newest first: {item, isTrouble}
    this.undrawn = [];
    this.unannounced = [];
    this.announceSoon = atMostOncePer(kAnnouncePauseMs, () => this.announce(), kAnnounceDelayMs);
    find("trouble-only").addEventListener("change", ({ target }) =>
      this.list.classList.toggle("trouble-only", target.checked));
  }

  /** Until draw(), it is not in the list. `isNew`: it is to be announced. */
  add(timeMs, event, isNew) {
    this.undrawn.push({ timeMs, event, isNew });
    // Nothing is drawn while the page is hidden, for hours perhaps.
    if (this.undrawn.length > kMostUndrawn) this.undrawn = this.newestOf(this.undrawn);
    if (!isNew) return;
    this.unannounced.push(event);
    this.announceSoon();
  }

  clear() {
    this.undrawn = [];
    this.shown = [];
    this.list.replaceChildren();
    find("no-events").hidden = false;
  }

  draw() {
    if (this.undrawn.length === 0) return;
    for (const { timeMs, event, isNew } of this.newestOf(this.undrawn)) {
      const isTrouble = kTrouble.has(event.event);
      const item = this.itemOf(timeMs, event, isTrouble, isNew);
      this.list.prepend(item);
      this.shown.unshift({ item, isTrouble });
    }
    this.undrawn = [];
    const left = this.newestOf([...this.shown].reverse(), ({ isTrouble }) => isTrouble).reverse();
    const kept = new Set(left);
    for (const one of this.shown) if (!kept.has(one)) one.item.remove();
    this.shown = left;
    find("no-events").hidden = this.shown.length > 0;
  }

  /** The last ones of each kind; a storm of placements does not drive out what may need somebody. */
  newestOf(all, isTrouble = ({ event }) => kTrouble.has(event.event)) {
    const left = { true: kMostOfAKind, false: kMostOfAKind };
    return all.toReversed().filter((one) => left[isTrouble(one)]-- > 0).toReversed();
  }

  itemOf(timeMs, event, isTrouble, isNew) {
    const time = new Date(timeMs);
    const item = element("li", { className: `${isTrouble ? "trouble" : "usual"} ${event.event}${isNew ? " new" : ""}` },
      element("time", { dateTime: time.toISOString(), title: time.toLocaleString(), textContent: time.toLocaleTimeString() }),
      " ", element(isTrouble ? "strong" : "span", { className: "what", textContent: event.event }),
      `${subjectOf(event)}: ${event.reason}`);
    return item;
  }

  announce() {
    find("announcer").textContent = sentenceAbout(this.unannounced);
    this.unannounced = [];
  }
}
