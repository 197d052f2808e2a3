// The band that says what is ill, at the moment that is looked at.
import { element, find, setText } from "./dom.js";

const kMostShown = 20;
const kMeanings = { critical: "no pod can start", warning: "needs somebody", notice: "notice" };

const sentenceOf = (one) => `${one.subject}: ${one.sentence}`;

function itemOf(one) {
  const item = element("li", { className: one.severity },
    element("strong", { textContent: kMeanings[one.severity] ?? one.severity }), ` ${sentenceOf(one)}`);
  if (one.since_ms) {
    const time = new Date(one.since_ms);
    item.append(" ", element("time", { dateTime: time.toISOString(), textContent: `since ${time.toLocaleTimeString()}` }));
  }
  return item;
}

function titleOf(illnesses) {
  const count = (all) => all.reduce((sum, one) => sum + (one.count || 1), 0);
  const serious = count(illnesses.filter((one) => one.severity !== "notice"));
  if (serious === 0) return "Nothing needs anybody";
  const what = `${serious} thing${serious === 1 ? " needs" : "s need"} somebody`;
  return illnesses.some((one) => one.severity === "critical") ? `No pod can start: ${what}` : what;
}

export class IllnessBand {
  constructor() {
    this.root = find("ill");
    this.told = "";
  }

  /** The worst first. */
  show(illnesses) {
    const told = JSON.stringify(illnesses);
    if (told === this.told) return;
    this.told = told;
    this.root.hidden = illnesses.length === 0;
    this.root.className = illnesses[0]?.severity ?? "";
    setText(find("ill-title"), titleOf(illnesses));
    const items = illnesses.slice(0, kMostShown).map(itemOf);
    if (illnesses.length > kMostShown) items.push(element("li", { textContent: `and ${illnesses.length - kMostShown} more` }));
    find("illnesses").replaceChildren(...items);
  }
}
