// Looks at the page in a headless Chromium as somebody would who sees it, who presses keys, or who listens to it.
// Usage: page_test.mjs PAGE_FOLDER AGENT: the folder with the page's files, and the program topolet-agent.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { colourOf, parseSet } from "../../../cluster/agent/page/node.js";
import { Browser, eventually } from "./browser.mjs";
import { StandIn, container, event, kHostileName, stateOf } from "./stand_in.mjs";
import { contrastsIn } from "./contrast.mjs";

const [folder, agentProgram] = process.argv.slice(2);
const kShift = 8;
let browser;
let agent;
let agentUrl;
let headers;

before(async () => {
  agent = spawn(agentProgram, ["--watch", `unix://${process.cwd()}/nobody.sock`, "--metrics-address", "none",
    "--page-address", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [agent.stdout, agent.stderr]) stream.on("data", (text) => { log += text; });
  agentUrl = await eventually("the agent serves", () => log.match(/the page is on (http:\S+)/)?.[1]);
  headers = Object.fromEntries((await fetch(agentUrl)).headers);
  delete headers["content-length"];
  browser = await Browser.start();
});

after(async () => {
  agent?.kill();
  await browser?.stop();
});

/** A test with the page of such a machine. */
function pageTest(name, { nodes = 2, cores = 8, history = [] }, work) {
  test(name, async () => {
    const standIn = await StandIn.serve(folder, stateOf(nodes, cores), { headers, history });
    const page = await browser.open(standIn.url);
    try {
      await page.eventually("the machine is there", () => document.querySelector("#machine .cpu.shared") !== null);
      await page.eventually("the table is there", () => document.querySelector("#containers tr") !== null);
      await page.eventually("the past is there", () => !document.getElementById("moment").disabled);
      await work(page, standIn);
      assert.deepEqual(page.complaints, []);
    } finally {
      await page.close();
      standIn.stop();
    }
  });
}

const rowNames = (page) => page.run(() =>
  [...document.querySelectorAll("#containers tr:not([hidden]) th button")].map((one) => one.textContent));
const focusedText = (page) => page.run(() =>
  document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
const textOf = (page, selector) => page.run((wanted) => document.querySelector(wanted)?.innerText, selector);

/** Presses the tab key until `matches(element)` is true of what has the focus. */
async function tabTo(page, matches, modifiers = 0) {
  for (let i = 0; i < 60; ++i) {
    await page.press("Tab", modifiers);
    if (await page.run(`() => (${matches})(document.activeElement)`)) return;
  }
  assert.fail(`no tab stop for which ${matches}`);
}

test("the agent serves the files that are tested here, and says what they may do", async () => {
  for (const name of await readdir(folder)) {
    const served = await fetch(agentUrl + name);
    assert.equal(served.status, 200, name);
    assert.equal(await served.text(), await readFile(`${folder}/${name}`, "utf8"), name);
  }
  const policy = headers["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /require-trusted-types-for 'script'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:|data:|blob:/);
});

test("the page of an agent without topoletd says so", async () => {
  const page = await browser.open(agentUrl);
  await page.eventually("it says so", () => document.getElementById("status").innerText === "topolet-agent is not connected to topoletd");
  assert.deepEqual(page.complaints, []);
  await page.close();
});

pageTest("asks nobody but its own host, and may not", {}, async (page, standIn) => {
  await page.press("Tab");
  assert.ok(page.requests.length >= 10, "there are several files");
  for (const url of page.requests) assert.ok(url.startsWith(standIn.url), url);
  const refused = await page.run(async (own) => {
    const other = own.replace("127.0.0.1", "localhost");
    const asked = await fetch(other).then(() => "answered", () => "refused");
    let made = "made";
    try { document.createElement("p").innerHTML = "<b>x</b>"; } catch { made = "refused"; }
    return [asked, made];
  }, standIn.url);
  assert.deepEqual(refused, ["refused", "refused"]);
  page.complaints = [];
});

pageTest("draws the machine", {}, async (page) => {
  const titles = await page.run(() => [...document.querySelectorAll("#machine .cpu")].map((one) => one.title));
  assert.equal(titles.length, 34);
  for (const cpu of [0, 1]) assert.equal(titles[cpu], `CPU ${cpu}: reserved for the system`);
  assert.equal(titles[3], "CPU 3: isolated by the kernel");
  for (const cpu of [4, 5]) assert.equal(titles[cpu], `CPU ${cpu}: default/trader/main alone`);
  for (const cpu of [6, 7]) assert.equal(titles[cpu], `CPU ${cpu}: kept idle for default/trader/main`);
  assert.equal(titles[10], "CPU 10: shared");
  for (const cpu of [32, 33]) assert.equal(titles[cpu], `CPU ${cpu}: offline or not allowed`);
  const text = await textOf(page, "#machine");
  for (const part of ["node 2: 16 GiB, no CPUs", "nvidia0", "devices of several nodes or none: nvme"]) assert.ok(text.includes(part), part);
});

pageTest("shows how much is used while somebody wants to see it", {}, async (page, standIn) => {
  const titleOf = (cpu) => page.run((number) => document.querySelector(`[data-cpu="${number}"]`).title, cpu);
  assert.equal(await page.run(() => document.getElementById("load-choice").hidden), true, "nobody measures");
  standIn.send("load", { is_settled: false, nodes: { 0: { used_milli: 3210, effective_milli: 14000 }, 1: {} },
    cpus: { 10: { used_milli: 456, effective_milli: 800 }, 11: { used_milli: 0 }, 12: {} } });
  await page.eventually("there is a choice", () => !document.getElementById("load-choice").hidden);
  assert.equal(await titleOf(10), "CPU 10: shared");
  await page.run(() => document.getElementById("show-load").click());
  await page.eventually("it is shown", () => document.querySelector('[data-cpu="10"]').classList.contains("measured"));
  assert.match(await titleOf(10), /^CPU 10: shared.*, 46 % used, 20 % taken by the hypervisor$/);
  assert.match(await titleOf(11), /, 0 % used$/);
  assert.doesNotMatch(await titleOf(12), /used/);
  assert.equal(await page.run(() => document.querySelector('[data-cpu="10"]').style.getPropertyValue("--used")), "46%");
  assert.ok((await textOf(page, "#machine")).includes("; 3.21 of 16 CPUs used, 14.00 effective"));
  assert.match(await textOf(page, "#load-notes"), /measured for less than a minute/);
  standIn.send("load", { is_settled: false, nodes: {}, cpus: {} });
  await page.eventually("it is gone", () => document.querySelector(".cpu.measured") === null);
  assert.match(await textOf(page, "#load-notes"), /nothing is measured now/);
});

pageTest("draws 64 nodes with 2,048 CPUs", { nodes: 64, cores: 16 }, async (page) => {
  assert.equal(await page.run(() => document.querySelectorAll("#machine .cpu").length), 2050);
  assert.equal(await page.run(() => document.querySelectorAll("#machine .package").length), 8);
  assert.equal(await page.run(() => document.documentElement.scrollWidth > innerWidth), false, "it is as wide as the window");
});

pageTest("shows names and reasons as text, whatever is in them", {}, async (page, standIn) => {
  const evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e";
  standIn.change({
    changed: [container("evil", "exclusive", "12-13", { pod_namespace: evil, reason: evil, used_devices: [evil], squeeze: evil,
      key: { pod_uid: evil, name: evil, attempt: 0, sandbox_id: evil } })],
    machine: { ...standIn.state.machine, devices: [{ name: evil, nodes: "0", cpus: "" }] },
    events: [event("denied", evil, { pod_namespace: evil, reason: evil, reason_code: evil })] });
  await page.eventually("the event is there", () => document.querySelector("#events .denied") !== null);
  await page.eventually("the row is there", (name) => document.getElementById("containers").textContent.includes(name), evil);
  await page.eventually("the map has it", (name) => document.querySelector('[data-cpu="12"]').title.includes(name), evil);
  await page.run(() => document.querySelector('[data-cpu="12"]').click());
  assert.ok((await page.run(() => document.getElementById("details").textContent)).includes(evil));
  assert.ok((await page.run(() => document.getElementById("events").textContent)).includes(evil));
  assert.ok((await page.run(() => document.getElementById("machine").textContent)).includes(evil));
  assert.ok((await rowNames(page)).includes(`default/${kHostileName}`));
  assert.equal(await page.run(() => document.body.querySelectorAll("img, script").length), 0);
});

pageTest("sorts the containers by each column", { nodes: 8, cores: 8 }, async (page) => {
  const titles = ["Pod", "Container", "Class", "Mode", "CPUs", "Memory nodes", "Phase"];
  const order = () => page.run(() => [...document.querySelectorAll("#columns th")]
    .map((one) => [one.textContent, one.getAttribute("aria-sort")]).filter(([, sort]) => sort));
  const column = (number) => page.run((at) => [...document.querySelectorAll("#containers tr")].map((row) => row.cells[at].textContent), number);
  const press = (number) => page.run((at) => document.querySelectorAll("#columns button")[at].click(), number);
  assert.deepEqual(await order(), [["Pod", "ascending"]]);
  const numbers = (await rowNames(page)).map((name) => Number(name.match(/pod-(\d+)$/)?.[1])).filter((one) => one);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b), "numbers in names count as numbers");
  assert.ok(numbers.length > 40);
  await press(4);
  assert.deepEqual(await order(), [["CPUs", "ascending"]]);
  const firsts = (await column(4)).map((text) => parseSet(text)[0]);
  assert.deepEqual(firsts, [...firsts].sort((a, b) => a - b));
  await press(4);
  assert.deepEqual(await order(), [["CPUs", "descending"]]);
  assert.deepEqual((await column(4)).map((text) => parseSet(text)[0]), firsts.reverse());
  for (const number of titles.keys()) {
    await press(number);
    assert.deepEqual(await order(), [[titles[number], "ascending"]]);
    const ascending = await column(number);
    await press(number);
    assert.deepEqual(await order(), [[titles[number], "descending"]]);
    assert.deepEqual((await column(number)).reverse(), ascending, titles[number]);
  }
});

pageTest("leaves the table where it was while rows change", { nodes: 8, cores: 8 }, async (page, standIn) => {
  await page.run(() => document.querySelectorAll("#columns button")[4].click());
  const place = () => page.run(() => {
    const row = [...document.querySelectorAll("#containers tr")].find((one) => one.textContent.includes("pod-40"));
    return { focused: document.activeElement === row.querySelector("button"), element: row.isSameNode(globalThis.kept ??= row),
      top: Math.round(row.getBoundingClientRect().top - document.querySelector(".scroll").getBoundingClientRect().top) };
  });
  await page.run(() => {
    const row = [...document.querySelectorAll("#containers tr")].find((one) => one.textContent.includes("pod-40"));
    document.querySelector(".scroll").scrollTop = row.offsetTop - 100;
    row.querySelector("button").focus({ preventScroll: true });
  });
  const before = await place();
  assert.equal(before.focused, true);
  assert.ok(await page.run(() => document.querySelector(".scroll").scrollTop > 100));
  for (let i = 0; i < 30; ++i) {
    // Some come in front of it, one goes, others and it itself change where they are.
    standIn.change({ changed: [container(`new-${i}`, "shared", `${i}-${i + 1}`), container(`pod-${50 - i % 5}`, "shared", `${100 - i}`),
      container("pod-40", "exclusive", "80-81", { phase: `phase-${i}` })], ended: i === 9 ? [container("pod-12", "shared", "").key] : [] });
  }
  await page.eventually("the last change is there", () => document.getElementById("containers").textContent.includes("phase-29"));
  assert.ok((await rowNames(page)).includes("default/new-29"));
  const firsts = await page.run(() => [...document.querySelectorAll("#containers tr")].map((row) => row.cells[4].textContent));
  const numbers = firsts.map((text) => parseSet(text)[0]);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b), "it is still sorted");
  assert.deepEqual(await place(), before);
  standIn.change({ changed: [container("pod-40", "exclusive", "0")] });
  await page.eventually("it has moved to the top", () => document.querySelector("#containers tr").textContent.includes("pod-40"));
  assert.equal((await place()).focused, true, "a row that moves keeps the focus");
});

pageTest("filters the containers by what is in their rows", {}, async (page, standIn) => {
  await page.run(() => document.getElementById("filter").focus());
  await page.type("TRADER");
  assert.deepEqual(await rowNames(page), ["default/trader"]);
  assert.equal(await textOf(page, "#rows-shown"), "1 of 9");
  standIn.change({ changed: [container("trader-2", "shared", "8-9"), container("other", "shared", "8-9")] });
  await page.eventually("the new one is there", () => document.getElementById("rows-shown").textContent === "2 of 11");
  assert.deepEqual(await rowNames(page), ["default/trader", "default/trader-2"]);
  await page.press("Escape");
  await page.type("squeezed");
  standIn.change({ changed: [container("other", "shared", "8-9", { squeeze: "placed" })] });
  await page.eventually("what is squeezed says so", () => document.getElementById("rows-shown").textContent === "1 of 11");
  await page.press("Escape");
  await page.eventually("all are there", () => document.querySelectorAll("#containers tr:not([hidden])").length === 11);
});

pageTest("follows the system's theme until one is chosen, and remembers that", {}, async (page, standIn) => {
  const isDark = () => page.run(() => getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)");
  const choose = (theme) => page.run((value) => {
    const select = document.getElementById("theme");
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }, theme);
  for (const system of ["light", "dark"]) {
    await page.emulate({ "prefers-color-scheme": system });
    assert.equal(await isDark(), system === "dark");
  }
  await choose("light");
  assert.equal(await isDark(), false);
  await page.visit(`${standIn.url}?again`);
  assert.equal(await page.run(() => document.getElementById("theme").value), "light");
  assert.equal(await isDark(), false);
  await choose("system");
  assert.equal(await isDark(), true);
});

pageTest("has a theme where nothing may be kept, too", {}, async (page, standIn) => {
  await page.send("Page.addScriptToEvaluateOnNewDocument", {
    source: 'Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no", "SecurityError"); } });' });
  await page.visit(`${standIn.url}?again`);
  await page.run(() => {
    const select = document.getElementById("theme");
    select.value = "dark";
    select.dispatchEvent(new Event("change"));
  });
  assert.notEqual(await page.run(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
});

pageTest("lists what happened with its time, and denials stand out without colours", {}, async (page, standIn) => {
  standIn.change({ events: [event("placed", "web")] });
  standIn.change({ events: [event("denied", "big"), event("re-placed", "web"), event("drift", "web"),
    event("overlap", "web")] });
  await page.eventually("they are there", () => document.querySelectorAll("#events li").length === 5);
  const lines = await page.run(() => [...document.querySelectorAll("#events li")].map((one) => one.textContent.replace(/^.*[AP]M /, "")));
  assert.deepEqual(lines, ["overlap default/web: why web", "drift default/web: why web", "re-placed default/web: why web",
    "denied default/big: why big", "placed default/web: why web"]);
  const denied = await page.run(() => {
    const line = document.querySelector("#events .denied");
    const what = line.querySelector("strong.what");
    const time = line.querySelector("time");
    return { sign: getComputedStyle(what, "::before").content, weight: Number(getComputedStyle(what).fontWeight),
      border: getComputedStyle(line).borderLeftWidth, sinceMs: Date.now() - new Date(time.dateTime) };
  });
  assert.match(denied.sign, /\u2715/);
  assert.ok(denied.weight >= 600);
  assert.equal(denied.border, "4px");
  assert.ok(denied.sinceMs >= 0 && denied.sinceMs < 3600e3);
  await page.run(() => document.getElementById("trouble-only").click());
  assert.deepEqual(await page.run(() => [...document.querySelectorAll("#events li")].filter((one) => one.checkVisibility())
    .map((one) => one.querySelector(".what").textContent)), ["overlap", "drift", "denied"]);
});

pageTest("a storm of placements drives no denial out of the list", {}, async (page, standIn) => {
  standIn.change({ events: [event("denied", "big")] });
  for (let i = 0; i < 300; ++i) standIn.change({ events: [event("placed", `pod-${i}`)] });
  await page.eventually("the last is there", () => document.getElementById("events").textContent.includes("pod-299"));
  assert.equal(await page.run(() => document.querySelectorAll("#events .usual").length), 50);
  assert.equal(await page.run(() => document.querySelectorAll("#events .denied").length), 1);
});

pageTest("tells a screen reader of a storm in few sentences", {}, async (page, standIn) => {
  const region = (await page.accessibleThings()).filter((one) => one.role === "status");
  assert.ok(region.some((one) => one.live === "polite"));
  await page.run(() => {
    globalThis.said = [];
    const announcer = document.getElementById("announcer");
    new MutationObserver(() => globalThis.said.push([performance.now(), announcer.textContent]))
      .observe(announcer, { childList: true });
  });
  for (let i = 0; i < 100; ++i) {
    standIn.change({ events: [event("placed", `pod-${i}`), event("denied", `big-${i}`)] });
    await pause(5);
  }
  const count = () => globalThis.said.reduce((sum, [, text]) => sum + Number(text.match(/^(\d+) events/)?.[1] ?? 1), 0);
  await page.eventually("all are told", `() => (${count})() === 200`);
  const said = await page.run(() => globalThis.said);
  assert.match(said[0][1], /^\d+ events: \d+ denied, \d+ placed$/, "what may need somebody comes first");
  for (let i = 1; i < said.length; ++i) assert.ok(said[i][0] - said[i - 1][0] > 9000, "there is a pause between two");
  assert.equal(await page.run(() => document.getElementById("events").closest("[aria-live]")), null);
});

pageTest("does not read out each change of the ledger", {}, async (page, standIn) => {
  await page.run(() => {
    globalThis.said = 0;
    for (const region of document.querySelectorAll("[role=status], [aria-live=polite], output:not([aria-live=off])")) {
      new MutationObserver(() => ++globalThis.said).observe(region, { childList: true, characterData: true, subtree: true });
    }
  });
  for (let i = 0; i < 20; ++i) standIn.change({ changed: [container("trader", "exclusive", i % 2 ? "4-5" : "8-9")] });
  await page.eventually("the last is drawn", () => document.getElementById("summary").textContent.includes("generation 30"));
  assert.equal(await page.run(() => globalThis.said), 0);
});

pageTest("leads to everything by the tab key, and shows where one is", {}, async (page) => {
  const wanted = ["theme", "moment", "cpu", "filter", "column", "scroll", "row", "trouble-only"];
  const reached = new Set();
  for (let i = 0; i < 40; ++i) {
    await page.press("Tab");
    const [what, width, style] = await page.run(() => {
      const at = document.activeElement;
      const what = at.id || (at.closest("#columns") ? "column" : at.closest("#containers") ? "row" : at.className.split(" ")[0]);
      return [what, parseFloat(getComputedStyle(at).outlineWidth), getComputedStyle(at).outlineStyle];
    });
    reached.add(what);
    if (what) assert.ok(width >= 3 && style !== "none", `${what} shows its focus: ${width} ${style}`);
  }
  assert.deepEqual(wanted.filter((one) => !reached.has(one)), []);
});

pageTest("is led over the CPUs by arrow keys", { nodes: 8 }, async (page) => {
  await tabTo(page, (at) => at.matches(".cpu"));
  const presses = async (...keys) => {
    for (const key of keys) await page.press(key);
    return page.run(() => Number(document.activeElement.dataset.cpu));
  };
  assert.equal(await presses(), 0);
  assert.equal(await presses("ArrowLeft"), 0);
  assert.equal(await presses("ArrowRight", "ArrowRight", "ArrowRight"), 3);
  assert.equal(await presses("ArrowLeft"), 2);
  assert.equal(await presses("PageDown"), 16);
  assert.equal(await presses("PageUp"), 0);
  assert.equal(await presses("End"), 129);
  assert.equal(await presses("Home"), 0);
  // Up and down as one sees it, not by number.
  const above = await presses("ArrowRight", "ArrowRight");
  const below = await presses("ArrowDown");
  const place = (cpu) => page.run((number) => {
    const { left, top } = document.querySelector(`[data-cpu="${number}"]`).getBoundingClientRect();
    return [left, top];
  }, cpu);
  const [[left, top], [otherLeft, otherTop]] = [await place(above), await place(below)];
  assert.ok(otherTop > top);
  assert.ok(Math.abs(otherLeft - left) < 40, `${left} ${otherLeft}`);
  await tabTo(page, (at) => at.id === "filter");
  await tabTo(page, (at) => at.matches(".cpu"), kShift);
  assert.equal(await presses(), below, "it comes back to where it was");
});

pageTest("opens the details by Enter, and closes them by Escape", {}, async (page, standIn) => {
  standIn.change({ changed: [container("trader", "exclusive", "4-5", { withheld: "6-7" })], events: [event("re-placed", "trader",
    { candidates: [{ nodes: "0", score: 42, rejected: false, opinions: [{ policy: "numa", kind: "score", score: 42, reason: "all fit" }] }] })] });
  await page.eventually("it is there", () => document.querySelectorAll("#events li").length === 1);
  await tabTo(page, (at) => at.matches(".cpu"));
  for (let i = 0; i < 4; ++i) await page.press("ArrowRight");
  assert.equal(await focusedText(page), "CPU 4: default/trader/main alone");
  await page.press("Enter");
  assert.equal(await page.run(() => document.activeElement.id), "details-title");
  const text = await textOf(page, "#details");
  for (const part of ["default/trader/main", "exclusive on CPUs 4-5", "numa: trader fits", "Candidate: node 0", "score 42; numa: score 42, all fit"]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.deepEqual(await page.run(() => [...document.querySelectorAll(".cpu.marked")].map((one) => one.dataset.cpu)), ["4", "5"]);
  await page.press("Escape");
  assert.match(await textOf(page, "#details"), /^Choose a container/);
  assert.equal(await focusedText(page), "CPU 4: default/trader/main alone");
  // A CPU that nobody has alone tells who may run there, and leads on to them.
  for (let i = 0; i < 4; ++i) await page.press("ArrowRight");
  await page.press("Enter");
  assert.ok((await textOf(page, "#details")).includes(kHostileName));
  await tabTo(page, (at) => at.closest("#details") !== null);
  await page.press("Enter");
  assert.ok((await textOf(page, "#details")).includes("shared on CPUs 8-15"));
  await page.press("Escape");
  assert.equal(await focusedText(page), "CPU 8: shared");
  await tabTo(page, (at) => at.closest("#containers") !== null);
  const row = await focusedText(page);
  await page.press(" ");
  assert.equal(await page.run(() => document.activeElement.id), "details-title");
  assert.ok((await textOf(page, "#details")).includes(row));
  await tabTo(page, (at) => at.id === "close");
  await page.press("Enter");
  assert.equal(await focusedText(page), row);
});

const kMinute = 60000;
const kPast = [1, 2, 3].map((step) => ({ generation: 10 + step, time_ms: Date.now() - (50 - 10 * step) * kMinute,
  changed: [container("trader", "exclusive", `${2 * step + 6}-${2 * step + 7}`)], events: [event("re-placed", "trader", { decision: step })] }));

pageTest("goes through the last hour by keys", { history: kPast }, async (page, standIn) => {
  standIn.change({ changed: [container("trader", "exclusive", "12-13")] });
  await page.eventually("what happened is listed", () => document.querySelectorAll("#events li").length === 3);
  await page.run(() => document.querySelector('button[data-key^="uid-trader"]').click());
  await tabTo(page, (at) => at.id === "moment", kShift);
  const told = () => page.run(() => document.getElementById("moment").getAttribute("aria-valuetext"));
  const where = (cpus) => page.eventually(`it is on ${cpus}`, (wanted) =>
    document.getElementById("details").innerText.includes(`exclusive on CPUs ${wanted}`), cpus);
  assert.equal(await told(), "now");
  await where("12-13");
  await page.press("ArrowLeft");
  assert.notEqual(await told(), "now");
  await page.press("ArrowRight");
  assert.equal(await told(), "now");
  await page.press("Home");
  await where("4-5");
  assert.match(await textOf(page, "#details"), /its decision was before this page knew of it/);
  const first = await told();
  for (let i = 0; i < 2; ++i) await page.press("PageUp");
  assert.notEqual(await told(), first);
  await where("8-9");
  assert.match(await textOf(page, "#details"), /1: re-placed/);
  standIn.change({ changed: [container("trader", "exclusive", "14-15")] });
  await where("8-9");
  await page.press("Escape");
  assert.equal(await told(), "now");
  await where("14-15");
  await page.press("Home");
  await tabTo(page, (at) => at.id === "now");
  await page.press("Enter");
  assert.equal(await told(), "now");
  assert.equal(await page.run(() => document.activeElement.id), "moment");
});

pageTest("counts what the stream tells again only once", { history: kPast }, async (page, standIn) => {
  standIn.send("delta", { ...kPast.at(-1), number: kPast.length });
  standIn.generation = kPast.at(-1).generation;
  standIn.change({ events: [event("placed", "web")] });
  await page.eventually("the new one is there", () => document.getElementById("events").textContent.includes("web"));
  assert.equal(await page.run(() => document.querySelectorAll("#events li").length), 4);
});

pageTest("keeps the hour where another topoletd tells, and marks when that was", { history: kPast }, async (page, standIn) => {
  await page.eventually("what happened is listed", () => document.querySelectorAll("#events li").length === 3);
  const ofAgent = (word, reason) => ({ ...event(word, ""), key: undefined, reason });
  const ago = (minutes) => Date.now() - minutes * kMinute;
  standIn.history.push(
    { generation: 13, time_ms: ago(5), connected: false, events: [ofAgent("disconnected", "no connection")] },
    { generation: 1, time_ms: ago(3), connected: true, version: "2", changed: [container("trader", "exclusive", "12-13")],
      events: [ofAgent("restarted", "another topoletd serves")] });
  standIn.number = standIn.history.length;
  standIn.generation = 1;
  standIn.state = { ...standIn.state, instance: "j", version: "2", generation: 1 };
  standIn.send("state", standIn.state);
  await page.eventually("the restart is listed", () => document.getElementById("events").textContent.includes("restarted topoletd: another"));
  assert.equal(await page.run(() => document.querySelectorAll("#events li").length), 5);
  const marks = () => page.run(() => [...document.querySelectorAll("#marks option")].map(({ value, label }) => [Math.round(value / 60), label]));
  assert.deepEqual(await marks(), [[-5, "disconnected"], [-3, "restarted"]]);
  const show = (minutes) => page.run((seconds) => {
    const moment = document.getElementById("moment");
    moment.value = seconds;
    moment.dispatchEvent(new Event("input"));
  }, -60 * minutes);
  const versionIs = (wanted) => page.eventually(`version ${wanted}`, (text) => document.getElementById("versions").textContent.includes(text), wanted);
  await show(35);
  await page.eventually("it is the past", () => document.getElementById("status").textContent === "the past");
  await versionIs("topoletd 1");
  await show(4);
  await page.eventually("nobody told then", () => document.getElementById("ill").innerText.includes("it was not connected"));
  assert.match(await textOf(page, "#status"), /not connected then/);
  await page.run(() => document.getElementById("now").click());
  await versionIs("topoletd 2");
  // Generations begin anew, which is not a reason to take a change for an old one.
  standIn.change({ events: [event("denied", "late")] });
  await page.eventually("what comes is listed", () => document.getElementById("events").textContent.includes("late"));
  assert.equal(await page.run(() => document.querySelectorAll("#events li").length), 6);
});

pageTest("says whose page it is, and in a band what is ill", {}, async (page, standIn) => {
  assert.equal(await page.run(() => document.title), "topolet: n1");
  assert.equal(await page.run(() => document.getElementById("ill").hidden), true);
  const illnesses = [{ code: "plugin-quarantined", severity: "warning", subject: "plugin numa", sentence: "in quarantine", since_ms: 0, count: 1 },
    { code: "drifted", severity: "notice", subject: `default/${kHostileName}/main`, sentence: "seen elsewhere", since_ms: Date.now(), count: 1 }];
  standIn.send("agent", { ...standIn.agent, illnesses });
  await page.eventually("it is said", () => !document.getElementById("ill").hidden);
  const text = await textOf(page, "#ill");
  assert.match(text, /1 thing needs somebody/);
  assert.match(text, /plugin numa: in quarantine/);
  assert.ok(text.includes(kHostileName));
  standIn.send("agent", { ...standIn.agent, illnesses: [] });
  await page.eventually("it is over", () => document.getElementById("ill").hidden);
});

for (const theme of ["light", "dark"]) {
  for (const nodes of [2, 64]) {
    pageTest(`can be read in the ${theme} theme with ${nodes} nodes`, { nodes, cores: nodes === 2 ? 8 : 16 }, async (page, standIn) => {
      await page.emulate({ "prefers-color-scheme": theme, "prefers-reduced-motion": "reduce" });
      standIn.change({ events: ["placed", "denied", "drift"].map((word) => event(word, "web")) });
      await page.eventually("it is there", () => document.querySelectorAll("#events li").length === 3);
      await page.run(() => document.querySelector('[data-cpu="4"]').click());
      const { texts, borders } = await page.run(contrastsIn);
      assert.ok(texts.length > 80 && borders.length > 30, `${texts.length} texts, ${borders.length} borders`);
      assert.deepEqual(texts.filter((one) => one.ratio < 4.5), []);
      assert.deepEqual(borders.filter((one) => one.ratio < 3), []);
    });
  }
}

test("black can be read on the colour of any pod", async () => {
  const page = await browser.open();
  const least = await page.run((colours) => {
    const probe = document.body.appendChild(document.createElement("p"));
    const luminance = (colour) => {
      probe.style.color = colour;
      const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g).map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    return Math.min(...colours.map((colour) => (luminance(colour) + 0.05) / 0.05));
  }, Array.from({ length: 5000 }, (_, i) => colourOf(`uid-${i}`)));
  assert.ok(least >= 4.5, `${least}`);
  await page.close();
});

pageTest("moves nothing where that is not wanted", {}, async (page, standIn) => {
  const running = () => page.run(() => document.getAnimations().length);
  await page.emulate({ "prefers-reduced-motion": "reduce" });
  standIn.change({ events: [event("denied", "web")] });
  await page.eventually("it is there", () => document.querySelectorAll("#events .new").length === 1);
  assert.equal(await running(), 0);
  assert.equal(await page.run(() => [...document.querySelectorAll("*")].filter((one) =>
    getComputedStyle(one).transitionDuration !== "0s" || getComputedStyle(one).animationName !== "none").length), 0);
  await page.emulate({ "prefers-reduced-motion": "no-preference" });
  assert.equal(await page.run(() => getComputedStyle(document.querySelector("#events .denied")).animationName), "appear");
});

/** How each kind of CPU in the legend looks but for its colours. */
const looks = (page, selector) => page.run((wanted) => [...document.querySelectorAll(wanted)].map((one) => {
  const style = getComputedStyle(one);
  const pattern = style.backgroundImage.replace(/(rgba?|color)\([^)]*\)/g, "");
  return `${one.className}: ${style.borderTopStyle} ${style.borderTopWidth} ${pattern}`;
}), selector);

for (const forced of ["none", "active"]) {
  pageTest(`tells kinds of CPUs apart without colours (forced colours: ${forced})`, {}, async (page) => {
    await page.emulate({ "forced-colors": forced });
    const kinds = (await looks(page, "#legend .cpu")).map((one) => one.split(": "));
    assert.equal(kinds.length, 7);
    assert.equal(new Set(kinds.map(([, look]) => look)).size, 7, JSON.stringify(kinds));
    const { borders } = await page.run(contrastsIn);
    assert.deepEqual(borders.filter((one) => one.ratio < 3), []);
    assert.deepEqual(await page.run(() => [...document.querySelectorAll(".cpu.exclusive")].map((one) =>
      getComputedStyle(one).forcedColorAdjust)), Array(await page.run(() => document.querySelectorAll(".cpu.exclusive").length)).fill(forced === "active" ? "none" : "auto"));
  });
}

pageTest("tells a screen reader what there is", {}, async (page) => {
  const things = await page.accessibleThings();
  const named = (role) => things.filter((one) => one.role === role);
  const cpus = named("button").filter((one) => one.name.startsWith("CPU "));
  assert.equal(cpus.length, 34);
  assert.ok(cpus.some((one) => one.name === "CPU 4: default/trader/main alone"));
  const groups = named("group").map((one) => one.name);
  for (const name of ["Machine", "package 0", "node 0: 64 GiB"]) assert.ok(groups.includes(name), `${name} in ${groups}`);
  assert.equal(named("table").length, 1);
  assert.deepEqual(named("columnheader").map((one) => one.name), ["Pod", "Container", "Class", "Mode", "CPUs", "Memory nodes", "Phase"]);
  assert.equal(named("rowheader").length, 9);
  assert.deepEqual(named("slider").map((one) => [one.name, one.valuemax]), [["Within the last hour", 0]]);
  assert.deepEqual(named("searchbox").map((one) => one.name), ["Show those with"]);
  assert.deepEqual(named("combobox").map((one) => one.name), ["Theme"]);
  assert.deepEqual(named("checkbox").map((one) => one.name), ["only what may need somebody"]);
  assert.deepEqual(named("heading").map((one) => one.name), ["topolet on n1", "Time", "Machine", "Containers", "Why", "What happened"]);
  for (const one of things.filter(({ focusable }) => focusable)) assert.ok(one.name || one.role === "RootWebArea", JSON.stringify(one));
});
