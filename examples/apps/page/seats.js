"use strict";

// The page talks to its host in JSON-RPC messages, by postMessage. This is all of the protocol
// that it needs: requests with promises, and a function for each notification.
const host = {
  sent: 0,
  waiting: new Map(),
  on: {},
  post(message) {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  },
  notify(method, params = {}) {
    this.post({ method, params });
  },
  request(method, params) {
    const id = ++this.sent;
    this.post({ id, method, params });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  },
  receive({ id, method, params, result, error }) {
    if (method === undefined) {
      const call = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) call?.reject(new Error(error.message));
      else call?.resolve(result);
      return;
    }
    const answer = this.on[method]?.(params);
    if (id !== undefined) this.post({ id, result: answer ?? {} });
  },
};

window.addEventListener("message", (event) => {
  if (event.source === window.parent && event.data?.jsonrpc === "2.0") host.receive(event.data);
});

const $ = (id) => document.getElementById(id);
let tool = "seat_map"; // its name at this host; a gateway puts a prefix before it

function setContext(context) {
  if (context.theme) document.documentElement.style.colorScheme = context.theme;
  if (context.toolInfo) tool = context.toolInfo.tool.name;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    document.documentElement.style.setProperty(name, value);
  }
}

function show({ flight, free }) {
  $("flight").textContent = flight;
  $("seats").replaceChildren(...["1A", "1B", "1C", "2A", "2B", "2C"].map((seat) => {
    const button = document.createElement("button");
    button.textContent = seat;
    button.disabled = !free.includes(seat);
    button.onclick = () => reserve(flight, seat, button);
    return button;
  }));
  $("status").textContent = `${free.length} seats are free.`;
}

// reserve calls a tool that the model cannot call.
async function reserve(flight, seat, button) {
  $("status").textContent = "One moment …";
  try {
    const result = await host.request("tools/call", { name: tool.replace(/seat_map$/, "reserve_seat"), arguments: { flight, seat } });
    const text = result.content[0].text;
    if (result.isError) throw new Error(text);
    button.disabled = true;
    button.className = "mine";
    $("status").textContent = text;
    await host.request("ui/update-model-context", { content: [{ type: "text", text }] });
  } catch (error) {
    $("status").textContent = error.message;
  }
}

host.on["ui/notifications/tool-input"] = ({ arguments: given }) => { $("flight").textContent = given?.flight ?? ""; };
host.on["ui/notifications/tool-result"] = (result) => {
  if (result.structuredContent) show(result.structuredContent);
  else $("status").textContent = result.content?.[0]?.text ?? "There is no result.";
};
host.on["ui/notifications/tool-cancelled"] = ({ reason }) => { $("status").textContent = `Cancelled: ${reason}`; };
host.on["ui/notifications/host-context-changed"] = setContext;
host.on["ui/resource-teardown"] = () => { $("status").textContent = "Goodbye."; };

host.request("ui/initialize", {
  protocolVersion: "2026-01-26",
  appInfo: { name: "Seats", version: "1.0.0" },
  appCapabilities: { availableDisplayModes: ["inline"] },
}).then(({ hostContext }) => {
  setContext(hostContext ?? {});
  host.notify("ui/notifications/initialized");
  new ResizeObserver(() => {
    const { width, height } = document.body.getBoundingClientRect();
    host.notify("ui/notifications/size-changed", { width: Math.ceil(width) + 32, height: Math.ceil(height) + 32 });
  }).observe(document.body);
});
