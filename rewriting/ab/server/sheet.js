"use strict";
// A sheet for one rater. Answers stay in this browser until they are downloaded.
const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);
const store = `sheet-${data.key}`;
let state = { consent: false, place: 0, answers: {} };
let shown = Date.now();

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(store));
    if (kept && kept.answers) state = kept;
  } catch { /* no storage here: the download is what counts */ }
}

function keep() {
  try { localStorage.setItem(store, JSON.stringify(state)); } catch { /* as above */ }
}

function results() {
  return { format: data.format, rater: data.rater, key: data.key, consent: state.consent, answers: Object.values(state.answers) };
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(results(), null, 1)], { type: "application/json" }));
  link.download = `results-${data.rater}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function questions() {
  for (const criterion of data.criteria) {
    const group = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = criterion.question;
    const choices = document.createElement("div");
    choices.className = "choices";
    const offered = [["A", "Reply A"], ...(data.ties ? [["tie", "No difference"]] : []), ["B", "Reply B"]];
    for (const [value, text] of offered) {
      const label = document.createElement("label");
      const input = document.createElement("input");
      input.type = "radio";
      input.name = `answer-${criterion.name}`;
      input.value = value;
      const name = document.createElement("span");
      name.textContent = text;
      label.append(input, name);
      choices.append(label);
    }
    group.append(legend, choices);
    part("questions").append(group);
  }
}

function show(name) {
  for (const id of ["start", "rating-page", "end"]) part(id).hidden = id !== name;
  part("download").disabled = !state.consent;
}

function turn() {
  if (!state.consent) return show("start");
  keep();
  if (state.place >= data.pages.length) {
    show("end");
    part("end").querySelector("h1").focus();
    return;
  }
  show("rating-page");
  const page = data.pages[state.place];
  const given = state.answers[page.item];
  const before = state.place ? data.pages[state.place - 1] : null;
  part("heading").textContent = `Pair ${state.place + 1} of ${data.pages.length}`;
  part("bar").max = data.pages.length;
  part("bar").value = Object.keys(state.answers).length;
  part("done").textContent = `${Object.keys(state.answers).length} saved`;
  const notes = [];
  if (before && before.practice && before.note) notes.push(`About the practice pair before: ${before.note}`);
  if (page.practice) notes.push("This is practice. It does not count.");
  part("note").textContent = notes.join(" ");
  part("note").hidden = !notes.length;
  part("history").replaceChildren(...page.history.map((text) => {
    const line = document.createElement("li");
    line.className = "text";
    line.textContent = text;
    return line;
  }));
  part("history-part").hidden = !page.history.length;
  for (const id of ["post", "a", "b"]) part(id).textContent = page[id];
  part("rating").reset();
  part("status").textContent = "";
  if (given) {
    for (const [name, value] of Object.entries(given.answers)) {
      const input = [...part("rating").elements].find((one) => one.name === `answer-${name}` && one.value === value);
      if (input) input.checked = true;
    }
    part("comment").value = given.comment;
    part("harmful").checked = given.harmful;
  }
  part("back").hidden = state.place === 0;
  part("heading").focus();
  window.scrollTo(0, 0);
  shown = Date.now();
}

part("rating").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(part("rating"));
  const answers = {};
  for (const { name } of data.criteria) {
    if (!form.get(`answer-${name}`)) {
      part("status").textContent = "Please answer every question.";
      return;
    }
    answers[name] = form.get(`answer-${name}`);
  }
  const item = data.pages[state.place].item;
  state.answers[item] = {
    item, answers, comment: part("comment").value.trim(), harmful: part("harmful").checked,
    seconds: Math.round(Date.now() - shown) / 1000, time: new Date().toISOString(),
  };
  state.place += 1;
  turn();
});
part("agree").addEventListener("click", () => { state.consent = true; turn(); });
part("back").addEventListener("click", () => { state.place -= 1; turn(); });
part("review").addEventListener("click", () => { state.place = data.pages.length - 1; turn(); });
part("download").addEventListener("click", download);
part("earlier").addEventListener("change", async (event) => {
  try {
    const kept = JSON.parse(await event.target.files[0].text());
    if (kept.key !== data.key) throw new Error("another sheet");
    state.answers = Object.fromEntries(kept.answers.map((one) => [one.item, one]));
    state.place = data.pages.findIndex((page) => !state.answers[page.item]);
    if (state.place < 0) state.place = data.pages.length;
    part("agree").textContent = "I agree and want to go on";
  } catch {
    part("agree").textContent = "That file does not belong to this sheet. Begin anew";
  }
});
questions();
load();
turn();
