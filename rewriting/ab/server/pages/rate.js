// The rating page works without this script. With it: letter keys answer the questions, and an answer
// that did not arrive is sent again, under the same attempt, until the server says that it is saved.
"use strict";
const form = document.getElementById("rating");
const notice = document.getElementById("status");
const save = form.querySelector("button.main");
const shortcuts = document.getElementById("shortcuts");
const questions = [...form.querySelectorAll("fieldset")];
const answered = (question) => question.querySelector("input:checked") !== null;

let letters = true;
try { letters = localStorage.getItem("letters") !== "off"; } catch { /* storage may be forbidden */ }
function showLetters() {
  shortcuts.hidden = false;
  shortcuts.setAttribute("aria-pressed", String(letters));
  shortcuts.textContent = "Letter keys: " + (letters ? "on" : "off");
}
shortcuts.addEventListener("click", () => {
  letters = !letters;
  try { localStorage.setItem("letters", letters ? "on" : "off"); } catch { /* as above */ }
  showLetters();
});
showLetters();

document.addEventListener("keydown", (event) => {
  if (!letters || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("textarea")) return;
  if (event.key === "Enter" && !event.target.closest("button, a, input[type=checkbox]")) {
    event.preventDefault();
    form.requestSubmit(save);
    return;
  }
  const here = event.target.closest("fieldset");
  const question = here || questions.find((one) => !answered(one)) || questions[0];
  const choice = [...question.querySelectorAll("input")].find((one) => one.dataset.key === event.key.toUpperCase());
  if (!choice) return;
  event.preventDefault();
  choice.checked = true;
  const after = questions.slice(questions.indexOf(question) + 1);
  const next = after.find((one) => !answered(one)) || questions.find((one) => !answered(one));
  if (next) next.querySelector("input").focus();
  else save.focus();
});

const wait = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));
const attemptNumber = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (save.disabled) return;
  save.disabled = true;
  const fields = new URLSearchParams(new FormData(form));
  fields.set("attempt", attemptNumber());
  for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
    try {
      const answer = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "application/json" } });
      if (answer.ok || answer.status === 409) { // 409: not saved, the pair is no longer open here
        location.assign((await answer.json()).next);
        return;
      }
      if (answer.status < 500 && answer.status !== 429) {
        form.submit();
        return;
      }
    } catch { /* no connection: try again */ }
    notice.textContent = "Not saved yet. Trying again…";
    await wait(pause);
  }
});

// A page that the browser kept and shows again is ready to save again.
addEventListener("pageshow", () => { save.disabled = false; });
