// The table of the containers.
import { element, find, nameOf, setAttribute, setText } from "./dom.js";
import { colourOf, holdsAlone, parseSet } from "./node.js";

const collator = new Intl.Collator("en", { numeric: true });
const compareText = (a, b) => collator.compare(a, b);

/** Compares by the first number, then by the next; sets without numbers come last. */
function compareSets(a, b) {
  const [left, right] = [parseSet(a), parseSet(b)];
  if (left.length === 0 || right.length === 0) return right.length - left.length;
  for (let i = 0; i < left.length && i < right.length; ++i) {
    if (left[i] !== right[i]) return left[i] - right[i];
  }
  return left.length - right.length;
}

/** Returns the mode, with anything that is not as it should be. */
function modeOf(one) {
  return `${one.mode}${one.squeeze ? ", squeezed" : ""}${one.conflict ? ", in conflict" : ""}`;
}

const kColumns = [
  { title: "Pod", of: (one) => `${one.pod_namespace}/${one.pod_name}`, compare: compareText },
  { title: "Container", of: (one) => one.key.name, compare: compareText },
  { title: "Class", of: (one) => one.qos, compare: compareText },
  { title: "Mode", of: modeOf, compare: compareText },
  { title: "CPUs", of: (one) => one.cpus, compare: compareSets },
  { title: "Memory nodes", of: (one) => one.mems, compare: compareSets },
  { title: "Phase", of: (one) => one.phase, compare: compareText },
];
const kNothing = "–";

export class ContainerTable {
  /** `onChoose(key, byKeyboard)`: a container was chosen. */
  constructor(onChoose) {
    this.body = find("containers");
    this.scroller = this.body.closest(".scroll");
    this.rows = new Map();
    this.column = 0;
    this.isDescending = false;
    this.isUnsorted = false;
    this.headers = kColumns.map(({ title }, column) => {
      const button = element("button", { type: "button", textContent: title });
      button.addEventListener("click", () => this.sortBy(column));
      return element("th", { scope: "col" }, button);
    });
    find("columns").append(...this.headers);
    this.showOrder();
    this.body.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key) onChoose(key, event.detail === 0);
    });
    find("filter").addEventListener("input", () => this.filter());
  }

  sortBy(column) {
    this.isDescending = column === this.column && !this.isDescending;
    this.column = column;
    this.isUnsorted = true;
    this.showOrder();
    this.sort();
  }

  showOrder() {
    this.headers.forEach((header, column) => {
      const order = this.isDescending ? "descending" : "ascending";
      if (column === this.column) header.setAttribute("aria-sort", order); else header.removeAttribute("aria-sort");
    });
  }

  show(containers, chosen) {
    const place = this.placeOf();
    for (const [key, made] of this.rows) {
      if (containers.has(key)) continue;
      made.row.remove();
      this.rows.delete(key);
    }
    for (const [key, one] of containers) {
      if (!this.rows.has(key)) {
        this.rows.set(key, this.makeRow(key));
        this.isUnsorted = true;
      }
      this.fillRow(this.rows.get(key), one, key === chosen);
    }
    this.sort();
    this.filter();
    if (place) this.scroller.scrollTop += place.row.getBoundingClientRect().top - place.top;
  }

  /** The row that is to stay where it is: the one with the focus if it can be seen, else the first that can. */
  placeOf() {
    if (this.scroller.scrollTop === 0) return null;
    const { top, bottom } = this.scroller.getBoundingClientRect();
    const isSeen = (row) => row && row.getBoundingClientRect().bottom > top && row.getBoundingClientRect().top < bottom;
    const focused = document.activeElement?.closest("#containers tr");
    const row = isSeen(focused) ? focused : [...this.body.children].find((one) => !one.hidden && isSeen(one));
    return row ? { row, top: row.getBoundingClientRect().top } : null;
  }

  focusOn(key) { this.rows.get(key)?.button.focus(); }

  makeRow(key) {
    const swatch = element("span", { className: "swatch" });
    const button = element("button", { type: "button" });
    button.dataset.key = key;
    const cells = kColumns.slice(1).map(() => element("td"));
    return { row: element("tr", {}, element("th", { scope: "row" }, swatch, button), ...cells), swatch, button, cells,
      of: null, isChosen: false };
  }

  /** Rows stay the same elements, so that whoever is about to press one does. */
  fillRow(made, one, isChosen) {
    if (made.of === one && made.isChosen === isChosen) return;
    const { of: value, compare } = kColumns[this.column];
    if (made.of === null || compare(value(made.of), value(one)) !== 0) this.isUnsorted = true;
    made.of = one;
    made.isChosen = isChosen;
    made.row.className = isChosen ? "marked" : "";
    setAttribute(made.button, "aria-pressed", String(isChosen));
    made.swatch.className = holdsAlone(one) ? "swatch alone" : "swatch";
    made.swatch.style.backgroundColor = holdsAlone(one) ? colourOf(one.key.pod_uid) : "";
    const texts = kColumns.map((column) => column.of(one) || kNothing);
    setText(made.button, texts[0]);
    made.cells.forEach((cell, i) => setText(cell, texts[i + 1]));
    made.text = texts.join(" ").toLowerCase();
  }

  /** Moves only the rows that are out of place, and gives the focus back to the one that loses it by that. */
  sort() {
    if (!this.isUnsorted) return;
    this.isUnsorted = false;
    const { of: value, compare } = kColumns[this.column];
    const sign = this.isDescending ? -1 : 1;
    const sorted = [...this.rows.values()].sort((a, b) =>
      sign * compare(value(a.of), value(b.of)) || collator.compare(nameOf(a.of), nameOf(b.of)));
    const focused = document.activeElement;
    let at = this.body.firstElementChild;
    for (const { row } of sorted) {
      if (row === at) at = at.nextElementSibling; else this.body.insertBefore(row, at);
    }
    if (focused !== document.activeElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }

  filter() {
    const wanted = find("filter").value.trim().toLowerCase();
    let shown = 0;
    for (const made of this.rows.values()) {
      const isHidden = !made.text.includes(wanted);
      if (made.row.hidden !== isHidden) made.row.hidden = isHidden;
      if (!isHidden) ++shown;
    }
    setText(find("rows-shown"), wanted ? `${shown} of ${this.rows.size}` : "");
  }
}
