"use strict";
// The exact leash in the browser: the closed form of algorithms/tilt.py over the table that the server wrote.
// Without this file the page works as a form; with it, bars and figures follow the slider.

(() => {
  const byId = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll("#answers tbody tr")];
  const column = (name) => rows.map((row) => Number(row.dataset[name]));
  const reference = column("before"), reward = column("reward"), gold = column("gold");
  const gaming = rows.map((row) => row.dataset.gaming === "1");
  const beta = byId("beta"), slider = byId("slider"), drawing = byId("drawing"), own = !byId("ask");
  const dot = (one, other) => one.reduce((sum, value, place) => sum + value * other[place], 0);

  // Probabilities of the policy that earns most E[reward] - beta KL; at beta 0 the best answers share equally.
  function tilt(beta) {
    const possible = reference.map((p) => p > 0);
    const best = Math.max(...reward.filter((_, place) => possible[place]));
    const logits = reward.map((value, place) => {
      if (!possible[place]) return -Infinity;
      return beta === 0 ? (value === best ? 0 : -Infinity) : Math.log(reference[place]) + (value - best) / beta;
    });
    const top = Math.max(...logits);
    const weights = logits.map((logit) => Math.exp(logit - top));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const shift = top + Math.log(total);
    return { policy: weights.map((weight) => weight / total), logs: logits.map((logit) => logit - shift) };
  }

  function kl({ policy, logs }) {
    return policy.reduce((sum, p, place) => sum + (p > 0 ? p * (logs[place] - Math.log(reference[place])) : 0), 0);
  }

  // As web/leash.py writes them.
  function number(value) {
    const size = Math.abs(value);
    if (size < 1e-12) return "0.000";
    return size >= 1e-3 && size < 1e5 ? value.toFixed(3) : value.toExponential(2);
  }
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function put(id, value, text) {
    const output = byId(id);
    if (!output) return;
    output.dataset.value = String(value);
    output.textContent = text(value);
  }

  function move(name, away, value) {
    const mark = drawing.querySelector(`.dot.${name}`);
    if (!mark) return;
    const low = Number(drawing.dataset.low), high = Number(drawing.dataset.high), far = Number(drawing.dataset.far);
    const along = far > 0 ? Math.sqrt(Math.max(away, 0) / far) : 0, up = high > low ? (value - low) / (high - low) : 0.5;
    mark.setAttribute("cx", String(12 + along * 576));
    mark.setAttribute("cy", String(188 - up * 176));
  }

  function show(value) {
    const found = tilt(value), away = kl(found);
    rows.forEach((row, place) => {
      const share = found.policy[place], cell = row.querySelector("td.policy");
      row.querySelector("rect.policy").setAttribute("width", `${100 * share}%`);
      cell.dataset.value = String(share);
      cell.textContent = percent(share);
    });
    put("proxy", dot(found.policy, reward), number);
    put("gold", dot(found.policy, gold), number);
    put("kl", away, number);
    put("gaming", found.policy.reduce((sum, p, place) => sum + (gaming[place] ? p : 0), 0), percent);
    move("proxy", away, dot(found.policy, reward));
    move("gold", away, dot(found.policy, gold));
    slider.setAttribute("aria-valuetext", `beta ${value}`);
    later(value);
  }

  // A screen reader is told once the hand rests; so is the address, which then brings this page back.
  let waiting = 0;
  function later(value) {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const told = [...document.querySelectorAll(".figures .figure")].map((box) =>
        `${box.querySelector("dt").textContent.split(":")[0]} ${box.querySelector("output").textContent}`);
      byId("said").textContent = `beta ${value}: ${told.join(", ")}`;
      if (!own) history.replaceState(null, "", `/leash?beta=${encodeURIComponent(beta.value)}`);
    }, 400);
  }

  function typed() {
    const value = beta.value === "" ? NaN : Number(beta.value);
    if (!Number.isFinite(value) || value < 0) return;
    slider.value = String(value > 0 ? Math.log10(value) : slider.min);
    show(value);
  }

  slider.addEventListener("input", () => {
    const value = Number((10 ** Number(slider.value)).toPrecision(3));
    beta.value = String(value);
    show(value);
  });
  beta.addEventListener("input", typed);
  if (!own) byId("ask").addEventListener("submit", (event) => { event.preventDefault(); typed(); });
  slider.hidden = false;
  document.querySelector(".ends").hidden = false;
  byId("show").hidden = true;
  slider.value = String(Number(beta.value) > 0 ? Math.log10(Number(beta.value)) : slider.min);
  slider.setAttribute("aria-valuetext", `beta ${beta.value}`);
})();
