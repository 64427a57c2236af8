// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The page works without this script. With it, the page reads itself again when the server says
// that something has changed, and replaces the parts that differ.
"use strict";

const status = document.getElementById("status");
const wanted = document.body.dataset.events.split(" ").filter(Boolean);
const pause = 250; // milliseconds between two readings at least
let shown = new Map(); // the parts as the server sent them
let timer, reading, stale;

function parts(doc) {
  return new Map([...doc.querySelectorAll("[data-live]")].map((part) => [part.id, part]));
}

function say(text, state) {
  if (status.textContent !== text) status.textContent = text;
  status.dataset.state = state;
}

// replace puts a part that has changed in place of the one that is shown. What is open stays open,
// and the focus stays where it was.
function replace(old, part) {
  const open = new Set([...old.querySelectorAll("details[open][id]")].map((d) => d.id));
  const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolls = [...old.querySelectorAll(".table, pre")].map((e) => [e.scrollLeft, e.scrollTop]);
  old.replaceWith(part);
  for (const id of open) part.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
  part.querySelectorAll(".table, pre").forEach((e, i) => scrolls[i] && e.scrollTo(...scrolls[i]));
  if (focus) document.getElementById(focus)?.focus();
}

// update shows a page that was read again. Parts that are new are added where they are there.
function update(doc) {
  const now = parts(doc), here = parts(document), main = document.querySelector("main");
  let before = null;
  for (const [id, part] of now) {
    const html = part.outerHTML, old = here.get(id);
    const node = document.importNode(part, true);
    if (!old) before ? before.after(node) : main.prepend(node);
    else if (shown.get(id) !== html) replace(old, node);
    shown.set(id, html);
    before = document.getElementById(id);
  }
  for (const [id, old] of here) {
    if (!now.has(id)) { old.remove(); shown.delete(id); }
  }
  document.title = doc.title;
}

async function read() {
  if (reading) { stale = true; return; }
  reading = true;
  stale = false;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    update(new DOMParser().parseFromString(await response.text(), "text/html"));
    say("live", "live");
  } catch {
    say("the server does not answer", "lost");
  }
  reading = false;
  if (stale) later();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(read, pause);
}

function follow() {
  const source = new EventSource("?events");
  let lost = false;
  source.addEventListener("open", () => {
    if (lost) later();
    lost = false;
    say("live", "live");
  });
  for (const event of wanted) source.addEventListener(event, later);
  source.onerror = () => {
    lost = true;
    say("reconnecting", "lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 2000, source.close());
  };
  window.addEventListener("pagehide", () => source.close(), { once: true });
}

for (const [id, part] of parts(document)) shown.set(id, part.outerHTML);
if (wanted.length > 0) {
  say("connecting", "wait");
  follow();
  later();
}

// Ctrl and Enter send a form, and areas of text grow with it.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form?.requestSubmit();
});
document.addEventListener("input", (event) => {
  if (event.target.tagName === "TEXTAREA") {
    event.target.rows = Math.min(20, Math.max(event.target.rows, event.target.value.split("\n").length));
  }
});
