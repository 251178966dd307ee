// The labelling page with keys, without reloads, and without losing a click. Everything here has a plain form under it.
"use strict";
document.documentElement.classList.add("js");

const page = document.querySelector(".labelling");
const box = document.getElementById("card");
const wire = document.getElementById("wire");
const guide = document.querySelector("aside details");
const wide = matchMedia("(min-width: 70rem)"); // where the guidelines stand beside the card, not above it
const kept = "killick-label-";
let sending = false; // one answer at a time: a double click is one click
let drawn = 0; // when the card came, so that the second half of a double click does not answer the next one
let looked = 0, since = 0; // milliseconds that the card was in sight
let rank = null; // of a ranking card

if (page) start();
else {
  login();
  addEventListener("hashchange", login);
}

// The token of a link stands behind its #, where no server and no log ever sees it.
function login() {
  const token = document.getElementById("token");
  if (!token || location.hash.length < 2) return;
  token.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}

async function start() {
  if (guide && wide.matches) guide.open = true;
  document.addEventListener("submit", submitted);
  document.addEventListener("keydown", pressed);
  document.addEventListener("visibilitychange", () => watch(!document.hidden));
  ready();
  // What a lost connection or a closed tab left behind is sent before anything else.
  for (const name of Object.keys(localStorage).filter(name => name.startsWith(kept))) {
    const left = JSON.parse(localStorage.getItem(name));
    if (left.annotator === page.dataset.annotator) await send(left, name);
  }
}

// A card has come.
function ready() {
  drawn = performance.now();
  looked = 0;
  since = document.hidden ? 0 : drawn;
  const list = box.querySelector(".ranking");
  rank = list ? ranking(list) : null;
}

function watch(visible) {
  if (since) looked += performance.now() - since;
  since = visible ? performance.now() : 0;
}

function submitted(event) {
  const form = event.target, by = event.submitter;
  if (!page.contains(form)) return;
  event.preventDefault();
  if (sending || (performance.now() - drawn < 350 && !(by && by.dataset.pressed))) return;
  watch(!document.hidden);
  const seconds = form.querySelector("[name=seconds]");
  if (seconds) seconds.value = (looked / 1000).toFixed(3);
  const body = new URLSearchParams(new FormData(form, by)).toString();
  const left = {annotator: page.dataset.annotator, path: new URL(form.action).pathname, body};
  const name = kept + form.querySelector("[name=key]").value;
  try { localStorage.setItem(name, JSON.stringify(left)); } catch { /* a full disk: the answer still goes out */ }
  send(left, name);
}

// Send until the server has it. The key in the body makes a second sending harmless.
async function send(left, name) {
  sending = true;
  box.setAttribute("aria-busy", "true");
  const buttons = [...box.querySelectorAll("button")];
  for (let attempt = 0; ; attempt++) {
    let answer = null;
    try {
      answer = await fetch(left.path, {
        method: "POST", body: left.body, signal: AbortSignal.timeout(10000),
        headers: {"content-type": "application/x-www-form-urlencoded", "x-killick-part": "card"},
      });
    } catch { /* no connection */ }
    const html = answer && (answer.headers.get("content-type") || "").startsWith("text/html");
    if (answer && answer.status === 401) { location.assign("/label/login"); return; }
    if (html && answer.status < 500) {
      const text = await answer.text().catch(() => null);
      if (text !== null) {
        localStorage.removeItem(name);
        swap(text);
        break;
      }
    } else if (answer && answer.status < 500 && answer.status !== 429) {
      localStorage.removeItem(name);
      const told = await answer.json().catch(() => ({errors: []}));
      tell("The server does not take this: " + (told.errors || []).map(one => one.reason).join(" "));
      break;
    }
    buttons.forEach(button => { button.disabled = true; });
    await patience(Math.min(500 * 2 ** attempt, 8000), answer);
  }
  buttons.forEach(button => { button.disabled = false; });
  box.removeAttribute("aria-busy");
  sending = false;
}

// Wait, but not longer than until the connection is back or somebody says so.
function patience(milliseconds, answer) {
  return new Promise(resolve => {
    const why = answer ? "The server could not store it." : "No connection.";
    const now = tell(`${why} Your answer is kept and sent again.`, "Send now");
    const go = () => { clearTimeout(timer); removeEventListener("online", go); resolve(); };
    const timer = setTimeout(go, milliseconds);
    addEventListener("online", go);
    now.addEventListener("click", go);
  });
}

function tell(text, word) {
  wire.textContent = text;
  wire.hidden = !text;
  if (!word) return null;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = word;
  wire.append(button);
  return button;
}

// The server's own markup, every text in it escaped there; a script in it would not run, and none may by its policy.
function swap(text) {
  tell("");
  box.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
  const asked = box.querySelector(".asked");
  if (asked) asked.focus({preventScroll: true});
  if (guide && !wide.matches) guide.open = false;
  scrollTo(0, 0);
  ready();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const at = event.target, writing = at.matches("input:not([type=checkbox], [type=radio]), textarea, select");
  if (writing) {
    if (event.key === "Escape") at.blur();
    if (event.key === "Enter" && at.matches("input")) { event.preventDefault(); at.blur(); }
    return;
  }
  const key = event.key.toLowerCase();
  if (event.repeat && (key.length === 1 || key === "enter" || key === "backspace")) { event.preventDefault(); return; }
  if (key === "enter" && at.closest("button, a, summary")) return;
  const act = sending ? null : action(key);
  if (act) { event.preventDefault(); act(); }
}

function action(key) {
  const button = value => box.querySelector(`button[name=choice][value="${value}"]`);
  const chosen = {"1": button("1"), "2": button("2"), "=": button("="), s: button("skip"), u: box.querySelector("button[form=undo]")}[key];
  if (chosen) return () => press(chosen);
  if (key === "f" && box.querySelector("[name=flag]")) return () => box.querySelector("[name=flag]").click();
  if (key === "n" && box.querySelector("[name=note]")) return () => box.querySelector("[name=note]").focus();
  const strong = {q: "1", w: "2", e: "3"}[key] && box.querySelector(`[name=strength][value="${{q: "1", w: "2", e: "3"}[key]}"]`);
  if (strong) return () => { strong.checked = true; };
  return rank ? rank.action(key, () => press(button("rank"))) : null;
}

function press(button) {
  button.dataset.pressed = "key";
  button.click();
  delete button.dataset.pressed;
}

// A ranking: its list stands in the order of the places, those without one at the end.
function ranking(list) {
  const start = [...list.children];
  const heard = document.getElementById("heard");
  let groups = []; // of list items, best first
  let tie = false; // whether the next number ties with the last group

  function read() { // from the fields, as a plain form would send them
    const placed = start.filter(item => place(item).value);
    const found = [...new Set(placed.map(item => +place(item).value))].sort((a, b) => a - b);
    groups = found.map(value => placed.filter(item => +place(item).value === value));
  }
  function place(item) { return item.querySelector("select"); }
  function number(item) { return item.querySelector("h2").textContent; }
  function draw() {
    groups = groups.filter(group => group.length);
    tell("");
    const ranked = groups.flat(), rest = start.filter(item => !ranked.includes(item));
    const order = [...ranked, ...rest];
    if (order.some((item, at) => list.children[at] !== item)) {
      const held = document.activeElement;
      list.replaceChildren(...order);
      if (list.contains(held)) held.focus();
    }
    for (const item of start) {
      const at = groups.findIndex(group => group.includes(item));
      place(item).value = at < 0 ? "" : at + 1;
      item.classList.toggle("placed", at >= 0);
      const tied = at >= 0 && groups[at].indexOf(item) > 0;
      item.classList.toggle("tied", tied);
      item.querySelector("[data-move=tie]").setAttribute("aria-pressed", tied);
    }
    heard.textContent = groups.map(group => group.map(number).join(" = ")).join(", then ") + (tie ? ", the next ties" : "");
  }
  function take(item) { groups = groups.map(group => group.filter(one => one !== item)).filter(group => group.length); }
  function add(item) {
    const was = groups.flat().includes(item);
    take(item);
    if (!was) {
      if (tie && groups.length) groups[groups.length - 1].push(item);
      else groups.push([item]);
    }
    tie = false;
    draw();
  }
  // What is seen after a move is the ranking: all have a place, and ties stay where neighbours stay neighbours.
  function asSeen(moved) {
    const tied = (one, other) => groups.some(group => group.includes(one) && group.includes(other));
    const next = [];
    for (const item of list.children) {
      const above = next.length && next[next.length - 1][next[next.length - 1].length - 1];
      if (above && item !== moved && above !== moved && tied(above, item)) next[next.length - 1].push(item);
      else next.push([item]);
    }
    groups = next;
    tie = false;
    draw();
  }
  function move(item, by) {
    const at = [...list.children].indexOf(item), to = list.children[at + by];
    if (!to) return;
    if (by < 0) to.before(item); else to.after(item);
    asSeen(item);
  }
  function toggle(item) {
    const above = item.previousElementSibling;
    if (!above) return;
    const together = groups.find(group => group.includes(item) && group.includes(above));
    if (!groups.flat().includes(item)) asSeen(null);
    const at = groups.findIndex(group => group.includes(above));
    if (together) groups.splice(at, 1, together.slice(0, together.indexOf(item)), together.slice(together.indexOf(item)));
    else groups.splice(at, 2, [...groups[at], ...groups[at + 1]]);
    draw();
  }

  list.addEventListener("change", () => { read(); draw(); });
  list.addEventListener("click", event => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    const item = button.closest("li"), what = button.dataset.move;
    if (what === "tie") toggle(item); else move(item, what === "up" ? -1 : 1);
    button.focus();
  });
  list.addEventListener("pointerdown", event => {
    const item = event.target.closest("li");
    if (!event.target.closest(".grip, h2") || event.button) return;
    event.preventDefault();
    item.classList.add("held");
    const follow = now => {
      const over = [...list.children].find(one => one !== item && now.clientY >= one.getBoundingClientRect().top && now.clientY <= one.getBoundingClientRect().bottom);
      if (over) {
        const edge = over.getBoundingClientRect();
        if (now.clientY < edge.top + edge.height / 2) over.before(item); else over.after(item);
      }
      if (now.clientY < 60) scrollBy(0, -12);
      if (now.clientY > innerHeight - 120) scrollBy(0, 12);
    };
    const drop = () => {
      item.classList.remove("held");
      removeEventListener("pointermove", follow);
      removeEventListener("pointerup", drop);
      removeEventListener("pointercancel", drop);
      asSeen(item);
    };
    addEventListener("pointermove", follow);
    addEventListener("pointerup", drop);
    addEventListener("pointercancel", drop);
  });

  return {
    action(key, send) {
      const item = start.find(one => number(one) === key);
      if (item) return () => add(item);
      if (key === "=" && groups.length) return () => { tie = !tie; draw(); };
      if (key === "backspace" && groups.length) return () => { take(groups[groups.length - 1].slice(-1)[0]); tie = false; draw(); };
      if (key !== "enter") return null;
      return groups.flat().length === start.length ? send : () => { tell("Give each response a place before you send."); };
    },
  };
}
