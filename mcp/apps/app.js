"use strict";

/**
 * What a page needs to talk to its host. Package apps inlines this script in the place of
 * <script src="psi:app.js"></script>; an editor that knows this file knows the types of app.
 *
 * @typedef {{ type: string, text?: string, [member: string]: any }} Content
 * @typedef {{ content?: Content[], structuredContent?: any, isError?: boolean, _meta?: Record<string, any> }} Result
 * @typedef {{ theme?: "light" | "dark", displayMode?: string, availableDisplayModes?: string[], locale?: string, timeZone?: string,
 *   toolInfo?: { tool: { name: string, _meta?: Record<string, any> } }, styles?: { variables?: Record<string, string> }, [member: string]: any }} Context
 *
 * @typedef {object} Handlers What the host sends. Other methods of the protocol are handled under their own names.
 * @property {(args: Record<string, any>) => void} [input] The arguments of the tool, before its result.
 * @property {(result: Result) => void} [result] The result of the tool, as the model gets it; it may be an error.
 * @property {(reason: string) => void} [cancelled] There will be no result.
 * @property {(context: Context) => void} [context] The theme, the display mode or another part of the context has changed.
 * @property {(reason: string) => any} [teardown] The page is about to be closed; a promise delays it for a short time.
 */

const app = new (class {
  /** @type {Context} What the host has said about itself and the tool; {} until ready. */
  context = {};

  /** @type {Map<number, { resolve: (result: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map();
  /** @type {Record<string, ((params: any) => any) | undefined>} */
  #handlers = {};
  /** @type {Promise<Context> | undefined} */
  #connected;
  #sent = 0;
  #prefix = "";

  constructor() {
    window.addEventListener("message", (event) => {
      if (event.source === window.parent && event.data?.jsonrpc === "2.0") this.#receive(event.data);
    });
  }

  /**
   * ready connects the page to its host, which then sends the arguments and the result of
   * the tool to the handlers. From then on, the page follows the theme and the variables of
   * the host, and reports its size whenever it changes. Call it once.
   *
   * @param {Handlers & Record<string, any>} [handlers]
   * @param {{ name?: string, version?: string, modes?: string[] }} [info] modes are the display modes that the page supports
   * @returns {Promise<Context>}
   */
  async ready(handlers = {}, info = {}) {
    if (window.parent === window) throw new Error("this page is for a host of MCP Apps, such as psi inspect");
    if (this.#connected) throw new Error("app.ready was called before");
    this.#setHandlers(handlers);
    this.#connected = this.#connect(info);
    return this.#connected;
  }

  /** @param {Handlers & Record<string, any>} handlers */
  #setHandlers(handlers) {
    this.#handlers = {
      ...handlers,
      "ui/notifications/tool-input": (params) => handlers.input?.(params.arguments ?? {}),
      "ui/notifications/tool-result": (params) => handlers.result?.(params),
      "ui/notifications/tool-cancelled": (params) => handlers.cancelled?.(params.reason ?? ""),
      "ui/notifications/host-context-changed": (params) => {
        this.#setContext(params);
        handlers.context?.(this.context);
      },
      "ui/resource-teardown": async (params) => {
        await handlers.teardown?.(params.reason ?? "");
        return {};
      },
      ping: () => ({}),
    };
  }

  /** @param {{ name?: string, version?: string, modes?: string[] }} info */
  async #connect({ name = document.title || "page", version = "1.0.0", modes = ["inline"] }) {
    const { hostContext } = await this.request("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: { name, version },
      appCapabilities: { availableDisplayModes: modes },
    });
    this.#setContext(hostContext ?? {});
    this.notify("ui/notifications/initialized");
    new ResizeObserver(() => this.size()).observe(document.documentElement);
    return this.context;
  }

  /**
   * call calls a tool of the server that the page is from. A result that is an error becomes
   * an exception with its text. The name is that of the server, also behind a gateway of psi.
   *
   * @param {string} name
   * @param {Record<string, any>} [args]
   * @returns {Promise<Result>}
   */
  async call(name, args = {}) {
    if (!this.#connected) throw new Error("call app.ready first");
    await this.#connected;
    const result = await this.request("tools/call", { name: this.#prefix + name, arguments: args });
    if (result.isError) throw new Error(this.text(result) || `${name} failed`);
    return result;
  }

  /**
   * text returns the text of a result.
   *
   * @param {Result} result
   */
  text(result) {
    return (result.content ?? []).flatMap((part) => part.text ?? []).join("\n");
  }

  /**
   * size reports the size of the page, or another one, in pixels. It is only needed for a
   * page whose own size says nothing, such as one that fills its frame.
   *
   * @param {number} [width]
   * @param {number} [height]
   */
  size(width, height) {
    const page = document.documentElement.getBoundingClientRect();
    this.notify("ui/notifications/size-changed", { width: Math.ceil(width ?? page.width), height: Math.ceil(height ?? page.height) });
  }

  /**
   * tell replaces what the model knows about the state of the page.
   *
   * @param {string} text
   * @param {Record<string, any>} [data]
   */
  tell(text, data) {
    return this.request("ui/update-model-context", { content: [{ type: "text", text }], structuredContent: data });
  }

  /**
   * say adds a message of the user to the conversation.
   *
   * @param {string} text
   */
  say(text) {
    return this.request("ui/message", { role: "user", content: [{ type: "text", text }] });
  }

  /**
   * open opens a link in the browser of the user.
   *
   * @param {string} url
   */
  open(url) {
    return this.request("ui/open-link", { url });
  }

  /**
   * request sends any other request, such as resources/read, and returns its result.
   *
   * @param {string} method
   * @param {Record<string, any>} [params]
   * @returns {Promise<any>}
   */
  request(method, params = {}) {
    const id = ++this.#sent;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ id, method, params });
    });
  }

  /**
   * notify sends any other notification, such as notifications/message.
   *
   * @param {string} method
   * @param {Record<string, any>} [params]
   */
  notify(method, params = {}) {
    this.#post({ method, params });
  }

  /** @param {Record<string, any>} message */
  #post(message) {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*"); // a sandboxed page cannot know the origin of its host
  }

  /** @param {Record<string, any>} message */
  async #receive({ id, method, params = {}, result, error }) {
    if (method === undefined) {
      const call = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) call?.reject(Object.assign(new Error(error.message), { code: error.code }));
      else call?.resolve(result);
      return;
    }
    const handler = this.#handlers[method];
    if (id === undefined) await handler?.(params);
    else if (!handler) this.#post({ id, error: { code: -32601, message: `the page does not have the method ${method}` } });
    else {
      const answer = Promise.resolve(params).then(handler);
      await answer.then((value) => this.#post({ id, result: value ?? {} }), (problem) => this.#post({ id, error: { code: -32603, message: problem.message } }));
    }
  }

  /** @param {Context} changes */
  #setContext(changes) {
    this.context = { ...this.context, ...changes };
    const root = document.documentElement.style;
    if (changes.theme) root.colorScheme = changes.theme;
    for (const [name, value] of Object.entries(changes.styles?.variables ?? {})) root.setProperty(name, value);
    if (changes.toolInfo) this.#prefix = prefixOf(changes.toolInfo.tool);

    // A gateway of psi puts prefixes before the names of tools, and into the URIs of pages.
    /** @param {{ name: string, _meta?: Record<string, any> }} tool */
    function prefixOf(tool) {
      const uri = tool._meta?.ui?.resourceUri ?? tool._meta?.["ui/resourceUri"] ?? "";
      const mounts = /^ui:\/\/((mount\/[^/]+\/)*)/.exec(uri)?.[1] ?? "";
      const prefix = mounts.replace(/mount\/([^/]+)\//g, "$1");
      return tool.name.startsWith(prefix) ? prefix : "";
    }
  }
})();
