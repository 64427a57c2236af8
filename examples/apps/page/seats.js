"use strict";

const $ = (id) => document.getElementById(id);

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
    const text = app.text(await app.call("reserve_seat", { flight, seat }));
    button.disabled = true;
    button.className = "mine";
    $("status").textContent = text;
    await app.tell(text); // so that the model knows
  } catch (error) {
    $("status").textContent = error.message;
  }
}

app.ready({
  input: ({ flight }) => { $("flight").textContent = flight ?? ""; },
  result: (result) => {
    if (result.structuredContent) show(result.structuredContent);
    else $("status").textContent = app.text(result) || "There is no result.";
  },
  cancelled: (reason) => { $("status").textContent = `Cancelled: ${reason}`; },
  teardown: () => { $("status").textContent = "Goodbye."; },
});
