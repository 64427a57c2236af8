// A page made with the official library. It reports what it is told by calling a tool.
import { App } from "@modelcontextprotocol/ext-apps";

const app = new App({ name: "Official", version: "1.0.0" }, { availableDisplayModes: ["inline", "fullscreen"] });
const report = (event, detail = null) => app.callServerTool({ name: "report", arguments: { event, detail: JSON.stringify(detail) } });

app.ontoolinput = (params) => report("tool-input", params.arguments);
app.ontoolresult = (result) => {
  document.body.textContent = result.content[0].text;
  report("tool-result", result.content[0].text);
};
app.ontoolcancelled = (params) => report("tool-cancelled", params.reason);
app.onhostcontextchanged = (context) => report("context", context);
app.onteardown = async (params) => {
  await report("teardown", params.reason ?? "");
  return {};
};

async function attempt(event, action) {
  try {
    await report(event, await action());
  } catch (error) {
    await report(event, `error: ${error.message}`);
  }
}

await app.connect();
await report("connected", { version: app.getHostVersion(), theme: app.getHostContext().theme, tool: app.getHostContext().toolInfo.tool.name });
await attempt("model-only", async () => (await app.callServerTool({ name: "model_only", arguments: {} })).content[0].text);
await attempt("resource", async () => (await app.readServerResource({ uri: "notes://a" })).contents[0].text);
await attempt("message", () => app.sendMessage({ role: "user", content: [{ type: "text", text: "hello" }] }));
await attempt("model-context", () => app.updateModelContext({ content: [{ type: "text", text: "seat 1A" }] }));
await attempt("display-mode", () => app.requestDisplayMode({ mode: "fullscreen" }));
await attempt("display-mode", () => app.requestDisplayMode({ mode: "inline" }));
await attempt("bad-link", () => app.openLink({ url: "javascript:alert(1)" }));
await app.sendLog({ level: "info", data: "logged" });
await app.sendSizeChanged({ width: 300, height: 321 });
await report("done");
