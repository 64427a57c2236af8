// A host made with the official library. It shows a page in the sandbox of psi.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const config = await (await fetch("/config")).json();
const log = (event, detail = null) => fetch("/log", { method: "POST", body: JSON.stringify({ event, detail: JSON.stringify(detail) }) });
const send = async (method, params) => {
  const { result, error } = await (await fetch("/rpc", { method: "POST", body: JSON.stringify({ method, params }) })).json();
  if (error) throw new Error(error);
  return result;
};

const frame = document.createElement("iframe");
frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
frame.style = "width: 600px; height: 400px";
frame.src = `${config.sandbox}/?${new URLSearchParams({ host: location.origin, csp: "null" })}`;
document.body.append(frame);

const bridge = new AppBridge(null, { name: "OfficialHost", version: "1.0.0" },
  { openLinks: {}, serverTools: {}, logging: {}, updateModelContext: { text: {} } },
  { hostContext: { theme: "light", displayMode: "inline", toolInfo: { tool: config.tool } } });
bridge.onsandboxready = () => bridge.sendSandboxResourceReady({ html: config.html });
bridge.onsizechange = (size) => log("size", size);
bridge.oncalltool = (params) => send("tools/call", params);
bridge.onupdatemodelcontext = async (params) => {
  await log("model-context", params.content[0].text);
  return {};
};
bridge.oninitialized = async () => {
  await log("initialized", bridge.getAppVersion());
  await bridge.sendToolInput({ arguments: config.arguments });
  await bridge.sendToolResult(await send("tools/call", { name: config.tool.name, arguments: config.arguments }));
  await bridge.sendHostContextChange({ theme: "dark" });
  await log("shown");
};
window.teardown = async () => log("teardown", await bridge.teardownResource({ reason: "the test ends" }));
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
