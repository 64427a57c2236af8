"use strict";

// The host's side of MCP Apps. It shows the page of a tool in a frame of the sandbox, answers
// the messages of the page, and passes its requests on to the server of this host, which
// decides what they may do.

const config = JSON.parse(document.getElementById("config").textContent);
const $ = (id) => document.getElementById(id);

const version = "2026-01-26";
const denied = -32000;
const maxPerSecond = 300; // messages; a page that sends more is closed
const maxPending = 32; // requests
const maxHeight = 4000; // pixels
const teardownTime = 1000; // milliseconds

function note(text, isProblem) {
  const item = document.createElement("li");
  item.textContent = text.slice(0, 500);
  if (isProblem) item.className = "problem";
  $("messages").append(item);
  while ($("messages").children.length > 200) $("messages").firstChild.remove();
}

function setState(text) {
  $("state").textContent = text;
}

// View is one page and what it has been told.
class View {
  constructor() {
    this.frame = document.createElement("iframe");
    this.frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
    this.frame.allow = config.allow;
    const query = new URLSearchParams({ host: location.origin, csp: JSON.stringify(config.csp ?? null) });
    this.frame.src = `${config.sandbox}/?${query}`;
    this.loaded = false; // the page was given to the proxy
    this.ready = false; // the page has said that it is initialized
    this.queue = []; // messages until then
    this.modes = ["inline"]; // that the page can do
    this.mode = "inline";
    this.waiting = new Map(); // requests of the host, by id
    this.sent = 0;
    this.pending = 0;
    this.counted = 0; // messages in this second
    this.second = 0;
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.receive = this.receive.bind(this);
    addEventListener("message", this.receive);
    $("frame").classList.toggle("border", config.border);
    $("frame").append(this.frame);
  }

  post(message) {
    this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, config.sandbox);
  }

  // notify sends a notification as soon as the page may get one.
  notify(method, params) {
    if (this.ready) this.post({ method, params });
    else this.queue.push({ method, params });
  }

  request(method, params) {
    const id = `host-${++this.sent}`;
    this.post({ id, method, params });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  // receive accepts messages of the proxy in this frame only.
  receive(event) {
    if (event.source !== this.frame.contentWindow || event.origin !== config.sandbox) {
      if (event.source !== window) note(`ignored a message from ${event.origin}`, true);
      return;
    }
    if (this.isFlooded()) {
      this.stop("The page was closed: it has sent too many messages.");
      return;
    }
    const m = event.data;
    if (m === null || typeof m !== "object" || m.jsonrpc !== "2.0" || !["string", "number", "undefined"].includes(typeof m.id)) {
      note("ignored a message that is not JSON-RPC", true);
      return;
    }
    if (typeof m.method !== "string") {
      this.waiting.get(m.id)?.(m.result);
      this.waiting.delete(m.id);
      return;
    }
    note(`← ${m.method}`);
    if (m.id === undefined) this.notified(m.method, m.params ?? {});
    else this.requested(m.id, m.method, m.params ?? {});
  }

  isFlooded() {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.second) [this.second, this.counted] = [second, 0];
    return ++this.counted > maxPerSecond;
  }

  notified(method, params) {
    switch (method) {
      case "ui/notifications/sandbox-proxy-ready":
        if (this.loaded) return;
        this.loaded = true;
        this.post({ method: "ui/notifications/sandbox-resource-ready", params: { html: config.html, csp: config.csp ?? undefined, permissions: config.permissions } });
        return;
      case "ui/notifications/initialized":
        if (this.ready || !this.introduced) return;
        this.ready = true;
        setState("The page is shown.");
        for (const message of this.queue.splice(0)) this.post(message);
        return;
      case "ui/notifications/size-changed":
        if (Number.isFinite(params.height) && params.height >= 0) this.frame.style.height = `${Math.min(params.height, maxHeight)}px`;
        return;
      case "ui/notifications/request-teardown":
        closeView("the page has asked for it");
        return;
      case "notifications/message":
        this.forward(method, params);
        return;
    }
    note(`ignored ${method}`, true);
  }

  async requested(id, method, params) {
    if (this.pending >= maxPending) {
      this.post({ id, error: { code: denied, message: `denied: ${maxPending} requests are pending` } });
      return;
    }
    this.pending++;
    const outcome = await this.serve(method, params).catch((error) => ({ error: { code: -32603, message: error.message } }));
    this.pending--;
    if (outcome.error) note(`→ ${method}: ${outcome.error.message}`, true);
    this.post({ id, ...outcome });
  }

  // serve returns {result} or {error}.
  async serve(method, params) {
    switch (method) {
      case "ui/initialize":
        this.introduced = true;
        this.modes = params.appCapabilities?.availableDisplayModes ?? ["inline"];
        return { result: { protocolVersion: version, hostInfo: config.host, hostCapabilities: config.capabilities, hostContext: this.context() } };
      case "ping":
        return { result: {} };
      case "ui/open-link":
        return this.openLink(params.url);
      case "ui/request-display-mode":
        if (["inline", "fullscreen"].includes(params.mode) && this.modes.includes(params.mode)) this.setMode(params.mode);
        return { result: { mode: this.mode } };
    }
    if (method.startsWith("ui/") && method !== "ui/message" && method !== "ui/update-model-context") {
      return { error: { code: -32601, message: `method not found: ${method}` } };
    }
    return this.forward(method, params);
  }

  async forward(method, params) {
    const response = await fetch(`/views/${config.view}/request`, { method: "POST", body: JSON.stringify({ method, params }) });
    return response.json();
  }

  async openLink(url) {
    const parsed = URL.canParse(url) ? new URL(url) : null;
    if (!["http:", "https:"].includes(parsed?.protocol)) return { error: { code: denied, message: "invalid URL: only http and https are opened" } };
    if (!$("question").hidden) return { error: { code: denied, message: "denied: the user is asked about another link" } };
    if (!(await ask(`Open ${parsed.href}?`))) return { error: { code: denied, message: "denied by the user" } };
    window.open(parsed.href, "_blank", "noopener,noreferrer");
    return { result: {} };
  }

  context() {
    return {
      toolInfo: { tool: config.tool },
      theme: this.theme,
      displayMode: this.mode,
      availableDisplayModes: ["inline", "fullscreen"],
      containerDimensions: { width: this.frame.clientWidth, maxHeight },
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      userAgent: `${config.host.name}/${config.host.version}`,
      platform: "web",
    };
  }

  setMode(mode) {
    if (mode === this.mode) return;
    this.mode = mode;
    $("frame").classList.toggle("fullscreen", mode === "fullscreen");
    this.notify("ui/notifications/host-context-changed", { displayMode: mode });
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.notify("ui/notifications/host-context-changed", { theme });
  }

  // teardown lets the page say goodbye, for a short time.
  async teardown(reason) {
    if (this.ready) {
      const late = new Promise((resolve) => setTimeout(resolve, teardownTime));
      await Promise.race([this.request("ui/resource-teardown", { reason }), late]);
    }
  }

  stop(text) {
    removeEventListener("message", this.receive);
    this.frame.remove();
    if (!$("question").hidden) $("no").click();
    setState(text);
    for (const id of ["theme", "cancel", "close"]) $(id).disabled = true;
  }
}

// ask asks the user, and returns whether the answer is yes. It must not be called while it asks:
// the user would answer another question than the one that was read.
function ask(text) {
  $("question").querySelector("span").textContent = text;
  $("question").hidden = false;
  return new Promise((resolve) => {
    for (const [id, answer] of [["yes", true], ["no", false]]) {
      $(id).onclick = () => {
        $("question").hidden = true;
        resolve(answer);
      };
    }
  });
}

const view = new View();
const calling = new AbortController();

// call calls the tool of the view, and tells the page.
async function call() {
  view.notify("ui/notifications/tool-input", { arguments: config.arguments });
  try {
    const response = await fetch(`/views/${config.view}/call`, { method: "POST", signal: calling.signal });
    const { result, error } = await response.json();
    if (error) throw new Error(error.message);
    view.notify("ui/notifications/tool-result", result);
  } catch (error) {
    const reason = calling.signal.aborted ? "cancelled by the user" : error.message;
    note(`the tool has not returned a result: ${reason}`, true);
    view.notify("ui/notifications/tool-cancelled", { reason });
  }
  $("cancel").disabled = true;
}

async function closeView(reason) {
  calling.abort();
  await view.teardown(reason);
  view.stop("The page is closed.");
}

$("theme").onclick = () => view.setTheme(view.theme === "dark" ? "light" : "dark");
$("cancel").onclick = () => calling.abort();
$("close").onclick = () => closeView("closed by the user");
call();
