"use strict";
const form = document.getElementById("filters");
const cards = [...document.querySelectorAll("article.card")];
const count = document.getElementById("count");

function update() {
  const wanted = new FormData(form);
  const words = wanted.get("words").trim().toLowerCase();
  let visible = 0;
  for (const card of cards) {
    const fits =
      (!wanted.get("initial") || card.dataset.initial === wanted.get("initial")) &&
      (!words || card.textContent.toLowerCase().includes(words));
    const rewrites = [...card.querySelectorAll(".rewrite")];
    let left = rewrites.length ? 0 : 1;
    for (const rewrite of rewrites) {
      rewrite.hidden =
        (wanted.get("system") && rewrite.dataset.system !== wanted.get("system")) ||
        (wanted.get("change") && rewrite.dataset.change !== wanted.get("change"));
      left += !rewrite.hidden;
    }
    card.hidden = !fits || !left;
    visible += !card.hidden;
  }
  count.textContent = `${visible} of ${cards.length} exchanges`;
}

if (form) {
  form.hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
