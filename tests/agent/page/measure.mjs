// How much of a browser's main thread the page takes with 64 nodes and 2,048 CPUs, where containers change all the time.
// Usage: measure.mjs PAGE_FOLDER [CHANGES_A_SECOND] [SECONDS]
import { setTimeout as pause } from "node:timers/promises";
import { Browser } from "./browser.mjs";
import { StandIn, container, event, stateOf } from "./stand_in.mjs";

const [folder, perSecond = "50", seconds = "10"] = process.argv.slice(2);
const standIn = await StandIn.serve(folder, stateOf(64, 16));
const browser = await Browser.start();
const page = await browser.open(standIn.url);
await page.eventually("it is drawn", () => document.querySelectorAll("#containers tr").length > 400);
// Measures the time of the thread itself, so that other programs on the machine do not count.
await page.send("Performance.enable", { timeDomain: "threadTicks" });
const numbers = async () => {
  const { metrics } = await page.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
};
await page.run(() => {
  globalThis.long = [];
  new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask" });
});
await pause(2000);
const before = await numbers();
const count = Number(perSecond) * Number(seconds);
const began = Date.now();
for (let i = 0; i < count; ++i) {
  const first = 4 * (i * 37 % 500) + 16;
  standIn.change({ changed: [container(`pod-${1 + i % 490}`, i % 3 ? "exclusive" : "shared", `${first}-${first + 3}`)],
    events: [event(i % 20 ? "placed" : "denied", `pod-${1 + i % 490}`)] });
  const due = began + (i + 1) * 1000 / Number(perSecond);
  if (due > Date.now()) await pause(due - Date.now());
}
await page.eventually("the last is drawn", (last) => document.querySelector("header").textContent.includes(`generation ${last}`), standIn.generation);
const after = await numbers();
const tookMs = Date.now() - began;
for (const name of ["TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"]) {
  const ms = (after[name] - before[name]) * 1000;
  console.log(`${name}: ${ms.toFixed(0)} ms, ${(ms / count).toFixed(2)} ms per change, ${(ms / tookMs * 100).toFixed(1)} % of the time`);
}
const long = await page.run(() => globalThis.long);
console.log(`${count} changes in ${tookMs} ms; ${long.length} tasks of more than 50 ms, the longest ${Math.max(0, ...long).toFixed(0)} ms`);
console.log(`nodes in the document: ${after.Nodes}, heap ${(after.JSHeapUsedSize / 2 ** 20).toFixed(1)} MiB`);
await browser.stop();
standIn.stop();
