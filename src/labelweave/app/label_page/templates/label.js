"use strict";
const part = (name) => document.getElementById(name);
const keys = { y: "yes", n: "no", d: "unknown", "?": "unknown", u: "undo" };
let state = null;
let isSending = false;
let timer = null;

function show(text) {
  part("trouble").textContent = text || "";
  part("trouble").hidden = !text;
}

async function ask(name, content) {
  const options = content === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
  };
  const response = await fetch(name, options);
  const found = await response.json();
  if (!response.ok) throw new Error(found.trouble || "The answer was rejected.");
  return found;
}

async function send(name, content) {
  if (isSending) return;
  isSending = true;
  for (const button of document.querySelectorAll("button")) button.disabled = true;
  try {
    state = await ask(name, content);
    render();
  } catch (error) {
    render();
    const lost = error instanceof TypeError ? "The server does not answer; the last answer may not be stored." : error.message;
    show(lost);
  } finally {
    isSending = false;
    enable();
  }
}

function enable() {
  const canAnswer = Boolean(state && state.row) && !isSending;
  for (const name of ["yes", "no", "unknown"]) part(name).disabled = !canAnswer;
  part("undo").disabled = isSending || !(state && state.can_undo);
}

function act(name) {
  if (name === "undo") {
    if (!part("undo").disabled) send("undo", {});
  } else if (state && state.row && !part(name).disabled) {
    send("answer", { row: state.row.id, label: state.row.entries[0].label, said: name });
  }
}

function item(text, kind) {
  const made = document.createElement("li");
  made.textContent = text;
  made.className = kind;
  return made;
}

function render() {
  if (!state) return;
  const fitting = state.is_fitting ? " The model is being fitted." : "";
  part("progress").textContent =
    `${state.answered} answered, ${state.known} of ${state.entries} entries known.${fitting}`;
  const row = state.row;
  part("question").hidden = part("row").hidden = !row && !state.is_done && !state.is_fitting;
  if (row) {
    const now = row.entries[0];
    part("row-title").textContent = `Row ${row.id}`;
    if (part("text").textContent !== row.text) {
      part("text").textContent = row.text;
      part("text").scrollTop = 0;
    }
    part("label").textContent = now.label;
    part("why").textContent = now.why;
    part("guess").hidden = now.guess === null;
    if (now.guess !== null) {
      part("share").style.width = `${100 * now.guess}%`;
      part("number").textContent = `guess ${now.guess.toFixed(2)}`;
    }
    const words = { yes: "yes", no: "no", unknown: "?" };
    part("entries").replaceChildren(
      ...row.answered.map((one) => item(`${one.label}: ${words[one.said]}`, "said")),
      ...row.entries.map((one, place) => item(one.label, place ? "waits" : "now")),
    );
  } else {
    part("row-title").textContent = state.is_done ? "All is answered" : "One moment";
    part("text").textContent = state.is_done ? "There is nothing left to ask." : "The next questions are being chosen.";
    part("label").textContent = "–";
    part("why").textContent = "";
    part("guess").hidden = true;
    part("entries").replaceChildren();
  }
  show(state.trouble);
  draw(state.curve);
  enable();
  clearTimeout(timer);
  if (state.is_fitting) timer = setTimeout(poll, row ? 1500 : 400);
}

async function poll() {
  if (isSending) return;
  try {
    const found = await ask("state");
    if (!isSending) {
      state = found;
      render();
    }
  } catch {
    show("The server does not answer.");
  }
}

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function draw(curve) {
  part("curve-part").hidden = curve.length < 2;
  if (curve.length < 2) return;
  const [left, right, top, bottom] = [34, 310, 10, 125];
  const first = curve[0][0];
  const last = Math.max(curve[curve.length - 1][0], first + 1);
  const x = (count) => left + ((right - left) * (count - first)) / (last - first);
  const y = (f1) => bottom - (bottom - top) * f1;
  const made = [];
  for (const level of [0, 0.5, 1]) {
    made.push(shape("line", { class: "axis", x1: left, x2: right, y1: y(level), y2: y(level) }));
    made.push(shape("text", { x: left - 6, y: y(level) + 3, "text-anchor": "end" }, level.toFixed(1)));
  }
  made.push(shape("text", { x: left, y: bottom + 16 }, first));
  made.push(shape("text", { x: right, y: bottom + 16, "text-anchor": "end" }, `${last} answers`));
  made.push(shape("polyline", { points: curve.map(([count, f1]) => `${x(count)},${y(f1)}`).join(" ") }));
  const [count, f1] = curve[curve.length - 1];
  made.push(shape("circle", { cx: x(count), cy: y(f1), r: 3.5 }));
  const words = shape("desc", { id: "curve-text" }, `${curve.length} points, the last ${f1.toFixed(2)} after ${count} answers.`);
  part("curve").replaceChildren(words, ...made);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const name = keys[event.key.toLowerCase()];
  if (name) {
    event.preventDefault();
    act(name);
  }
});
for (const name of ["yes", "no", "unknown", "undo"]) part(name).addEventListener("click", () => act(name));
poll();
