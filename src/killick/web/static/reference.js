// Sends the example of an endpoint, as edited, and shows the reply. Without it the page still has the curl lines.
for (const section of document.querySelectorAll(".endpoint")) {
  const form = section.querySelector("form"), told = form.querySelector("output"), reply = form.querySelector(".reply");
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = form.querySelector("textarea"), address = form.querySelector("input");
    const ask = body
      ? [section.dataset.path, { method: "POST", body: body.value, headers: { "content-type": "application/json" } }]
      : [address.value, {}];
    told.textContent = "waiting …";
    const begun = performance.now();
    try {
      const said = await fetch(...ask), text = await said.text();
      told.textContent = `${said.status} after ${Math.round(performance.now() - begun)} ms`;
      reply.textContent = pretty(text).slice(0, 20000);
      reply.hidden = false;
    } catch (error) {
      told.textContent = `no answer (${error.message})`;
    }
  });
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
