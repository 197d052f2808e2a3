// A headless Chromium, told what to do over a pipe in the DevTools protocol.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const kPatienceMs = 60000;
// Windows' numbers of keys, which pages still get to see.
const kKeyCodes = { Tab: 9, Enter: 13, Escape: 27, " ": 32, PageUp: 33, PageDown: 34, End: 35, Home: 36, ArrowLeft: 37,
  ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };
const kKeyTexts = { Enter: "\r", " ": " " };

/** Calls `look` until it returns something true, and returns that. */
export async function eventually(what, look) {
  const until = Date.now() + kPatienceMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > until) throw new Error(`never: ${what}`);
    await pause(30);
  }
}

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), "topolet-page-"));
    browser.process = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--no-first-run", "--disable-background-networking", "--disable-component-update",
      `--user-data-dir=${browser.folder}`, "--window-size=1400,1000", "--remote-debugging-pipe", "about:blank"],
    { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"], env: { ...process.env, HOME: browser.folder } });
    browser.log = "";
    browser.process.stderr.on("data", (text) => { browser.log = (browser.log + text).slice(-4000); });
    browser.pending = new Map();
    browser.pages = new Map();
    browser.lastId = 0;
    browser.listen();
    await browser.send("Target.setDiscoverTargets", { discover: false });
    return browser;
  }

  listen() {
    let rest = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      for (const message of messages) this.onMessage(JSON.parse(message));
    });
    this.process.on("exit", () => {
      for (const { reject } of this.pending.values()) reject(new Error(`chromium has ended: ${this.log}`));
      this.pending.clear();
    });
  }

  onMessage(message) {
    if (message.id === undefined) {
      this.pages.get(message.sessionId)?.onEvent(message.method, message.params);
      return;
    }
    const { resolve, reject } = this.pending.get(message.id);
    this.pending.delete(message.id);
    if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** A page with storage of its own. */
  async open(url) {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setFocusEmulationEnabled", { enabled: true });
    if (url) await page.visit(url);
    return page;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

class Page {
  constructor(browser, sessionId, targetId) {
    Object.assign(this, { browser, sessionId, targetId, requests: [], complaints: [] });
  }

  send(method, params = {}) { return this.browser.send(method, params, this.sessionId); }

  onEvent(method, params) {
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") this.complaints.push(JSON.stringify(params.exceptionDetails));
    if (method === "Log.entryAdded") this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
  }

  async visit(url) {
    await this.send("Page.navigate", { url });
    await eventually(`${url} is loaded`, () => this.run((wanted) =>
      document.readyState === "complete" && location.href === wanted, url));
  }

  /** Runs `work(...values)` in the page and returns its result; it cannot use variables from here. */
  async run(work, ...values) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression: `(${work})(...${JSON.stringify(values)})`, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  eventually(what, work, ...values) { return eventually(what, () => this.run(work, ...values)); }

  /** As somebody presses it. */
  async press(key, modifiers = 0) {
    const pressed = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: kKeyCodes[key], modifiers };
    const text = kKeyTexts[key];
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", text, ...pressed });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...pressed });
  }

  type(text) { return this.send("Input.insertText", { text }); }

  /** `features`: such as {"prefers-color-scheme": "dark"}. */
  emulate(features) {
    const list = Object.entries(features).map(([name, value]) => ({ name, value }));
    return this.send("Emulation.setEmulatedMedia", { features: list });
  }

  /** All that a screen reader is told: [{role, name, …properties}] */
  async accessibleThings() {
    await this.send("Accessibility.enable");
    const { nodes } = await this.send("Accessibility.getFullAXTree");
    await this.send("Accessibility.disable");
    return nodes.filter((node) => !node.ignored).map((node) => ({ role: node.role?.value, name: node.name?.value ?? "",
      value: node.value?.value,
      ...Object.fromEntries((node.properties ?? []).map(({ name, value }) => [name, value.value])) }));
  }

  close() { return this.browser.send("Target.closeTarget", { targetId: this.targetId }); }
}
