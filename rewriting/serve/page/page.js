// The page: asks for feedback and a rewrite, shows both, and lets a person take, change or leave each edit.
"use strict";
const MECHANISMS = {
  emotional_reactions: "Emotional reactions",
  interpretations: "Interpretations",
  explorations: "Explorations",
};
const EXAMPLE = {
  seeker_post: "I failed the exam again. My mind went blank, and I don't know how to tell my parents.",
  response_post: "Start earlier next time. Practice tests help.",
};
const ALTERNATIVES = 4; // that are shown beside the suggestion; more are too many to choose from
const RESCORE_MILLISECONDS = 700;
const $ = (id) => document.getElementById(id);
const form = $("form");
const fields = { seeker_post: $("seeker_post"), response_post: $("response_post") };
const longest = Number(document.body.dataset.longest);
let terms = {};      // reward term → weight and what it is, from /health
let asked = null;    // the texts that the answers on the page are about
let answer = null;   // of /rewrite
let shown = null;    // the candidate that is chosen: {changes, rewards}
let seed = 0;
let running = null;  // an AbortController, while work is going on
let rescoring = null;

function element(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside);
  return made;
}

// ---- asking the server

const storage = { // may be forbidden
  get() { try { return sessionStorage.getItem("token") || ""; } catch { return ""; } },
  set(value) { try { sessionStorage.setItem("token", value); } catch { /* as above */ } },
};
if (location.hash.startsWith("#token=")) {
  storage.set(decodeURIComponent(location.hash.slice("#token=".length)));
  history.replaceState(null, "", location.pathname);
}
$("token").value = storage.get();
$("token").addEventListener("change", () => storage.set($("token").value.trim()));

async function ask(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const token = $("token").value.trim();
  if (token) headers.Authorization = "Bearer " + token;
  let reply;
  try {
    reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const found = await reply.json().catch(() => ({ error: "The server's answer could not be read." }));
  if (reply.ok) return found;
  if (reply.status === 401) {
    $("token-row").hidden = false;
    $("token").focus();
  }
  throw new Error(found.error || "The server refused the request.");
}

fetch("/health").then((reply) => reply.json()).then((health) => {
  terms = health.rewards;
  $("policy").textContent = "policy: " + health.policy;
  $("token-row").hidden = !health.token_needed || storage.get() !== "";
}).catch(() => { /* the first request will say what is wrong */ });

// ---- that work is going on

function say(text) { $("status").textContent = text; }

async function work(steps) {
  if (running) return;
  const texts = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
  if (!check(texts)) return;
  running = new AbortController();
  clearTimeout(rescoring);
  $("problem").textContent = "";
  busy(true);
  const start = performance.now();
  const tick = () => { $("elapsed").textContent = Math.round((performance.now() - start) / 1000) + " s"; };
  const clock = setInterval(tick, 500);
  tick();
  try {
    await steps(texts, running.signal);
  } catch (error) {
    say("");
    $("problem").textContent = error.name === "AbortError" ? "Cancelled." : error.message;
  }
  clearInterval(clock);
  running = null;
  busy(false);
}

function busy(on) {
  $("working").hidden = !on;
  $("main").setAttribute("aria-busy", String(on));
  for (const id of ["suggest", "only-feedback", "example", "again"]) $(id).disabled = on;
}

function check(texts) {
  for (const [name, text] of Object.entries(texts)) {
    const size = [...text].length;
    const wrong = text.trim() === "" ? "Please fill in both texts." : size > longest ? "This text is too long." : "";
    fields[name].setAttribute("aria-invalid", String(wrong !== ""));
    if (wrong) {
      $("problem").textContent = wrong;
      fields[name].focus();
      return false;
    }
  }
  return true;
}

async function readReply(texts, signal) {
  say("Reading your reply …");
  showFeedback(texts, await ask("/feedback", texts, signal));
}

async function suggest(texts, signal) {
  $("result").hidden = true;
  await readReply(texts, signal);
  say("Writing suggestions …");
  answer = await ask("/rewrite", { ...texts, seed }, signal);
  asked = texts;
  showAnswer();
  const held = answer.safety.verdict !== "clear";
  say(held ? "Your reply comes back as it was." : "The suggestion is ready.");
  (held ? $("safety-title") : $("result-title")).focus();
  if (!held) await rescore(signal);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  seed = 0;
  work(suggest);
});
$("again").addEventListener("click", () => {
  if (running) return;
  seed += 1;
  work(suggest);
});
$("only-feedback").addEventListener("click", () => work(async (texts, signal) => {
  $("result").hidden = true;
  $("safety").hidden = true;
  await readReply(texts, signal);
  say("Done.");
  $("feedback-title").focus();
}));
$("cancel").addEventListener("click", () => running?.abort());
$("example").addEventListener("click", () => {
  for (const [name, text] of Object.entries(EXAMPLE)) fields[name].value = text;
  Object.values(fields).forEach(count);
  $("suggest").focus();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
function count(field) {
  const size = [...field.value].length;
  $(field.id + "-count").textContent = `${size.toLocaleString("en")} of ${longest.toLocaleString("en")} characters`;
  $(field.id + "-count").classList.toggle("too-long", size > longest);
}
for (const field of Object.values(fields)) {
  field.addEventListener("input", () => count(field));
  count(field);
}

// ---- what was found

function legend(levels) {
  return Object.entries(MECHANISMS).map(([name, title]) =>
    element("span", {}, element("span", { class: name }, title), levels ? ` ${levels[name]} of 2` : ""));
}

function markedPieces(pieces) {
  const made = [];
  let open = null; // the edit whose <ins> is the last one made
  for (const { text, mechanisms, change } of pieces) {
    const inside = mechanisms.length ? element("mark", { class: mechanisms.join(" ") }, text) : text;
    const edit = change?.edited && change.taken ? change : null;
    if (!edit) made.push(inside);
    else if (edit === open) made.at(-1).append(inside);
    else made.push(element("ins", {}, inside));
    open = edit;
  }
  return made;
}

function showFeedback(texts, found) {
  $("marked").replaceChildren(...markedPieces(cutBySpans(texts.response_post, found.spans)));
  $("feedback-line").textContent = `Empathy ${found.empathy} of 6, as a model of empathy reads it.`;
  $("feedback-legend").replaceChildren(...legend());
  $("notes").replaceChildren(...Object.entries(MECHANISMS).map(([name, title]) => {
    const note = found[name];
    const parts = [
      element("h3", {}, element("span", { class: name }, title), ` ${note.level} of 2`),
      element("p", {}, note.found),
    ];
    if (note.missing) parts.push(element("p", {}, note.missing), element("p", { class: "say" }, note.example));
    return element("div", { class: "card" }, ...parts);
  }));
  $("feedback").hidden = false;
  showSafety(found.safety);
}

function showSafety(safety) {
  $("safety").hidden = safety.verdict === "clear";
  if (safety.verdict === "clear") return;
  $("safety-said").textContent = safety.verdict === "unchecked"
    ? "The safety check cannot read this language, so nothing is rewritten. Please answer in your own words."
    : "Somebody may be in danger here. Your reply stays as it is: please answer in your own words, and share where help is.";
  $("safety-help").textContent = safety.help || "";
  $("safety-reasons").replaceChildren(...safety.reasons.map((reason) => element("li", {}, reason)));
}

function candidates() {
  return [answer, ...answer.alternatives];
}

function showAnswer() {
  showSafety(answer.safety);
  $("result").hidden = answer.safety.verdict !== "clear";
  const all = candidates();
  for (const one of all) for (const change of one.changes) change.taken = change.edited;
  const offered = all.filter((one, number) => number <= ALTERNATIVES || one.rewritten_response === answer.response_post);
  $("choices-part").hidden = offered.length < 2;
  $("choices").replaceChildren(...offered.map((one, number) => choice(one, number)));
  const rejected = answer.safety.rejected || [];
  const kept = answer.rewritten_response === answer.response_post;
  $("verdict-line").textContent = !kept ? "New sentences are marked."
    : rejected.length ? "Your reply stays as it was: every other sentence was rejected."
    : "Your reply stays as it was: no suggestion is clearly better.";
  choose(answer);
}

function choice(one, number) {
  const asItWas = one.rewritten_response === answer.response_post;
  const radio = element("input", {
    type: "radio", name: "candidate", value: String(number), checked: number === 0, on: { change: () => choose(one) },
  });
  const title = asItWas ? "The reply as it was" : number === 0 ? "Suggested" : `Alternative ${number}`;
  const text = asItWas ? "" : one.changes.filter((change) => change.edited).map((change) => change.after.trim()).join(" … ");
  return element("label", {}, radio, element("span", {}, element("strong", {}, title), text && element("span", { class: "gist", dir: "auto" }, text)));
}

function choose(one) {
  shown = one;
  const edits = one.changes.filter((change) => change.edited);
  $("edits-part").hidden = edits.length === 0;
  $("edits").replaceChildren(...edits.map((change, number) => editItem(change, number + 1)));
  showRewards(one.rewards);
  showComposed({});
  scoreSoon();
}

function editItem(change, number) {
  const id = "edit-" + number;
  const kind = !change.before ? "New sentence" : change.after ? "Instead of" : "Left out";
  const parts = [element("p", { class: "kind" }, element("strong", {}, `${number}. ${kind}`), change.before ? element("del", { dir: "auto" }, change.before.trim()) : "")];
  if (change.after) {
    const text = element("textarea", { id, rows: 2, dir: "auto" });
    text.value = (change.text ?? change.after).trim();
    text.addEventListener("input", () => {
      change.text = text.value;
      changed();
    });
    parts.push(element("label", { for: id, class: "unseen" }, `Sentence of edit ${number}`), text);
  }
  const toggle = element("button", { type: "button", "aria-pressed": String(change.taken) });
  const label = () => {
    toggle.setAttribute("aria-pressed", String(change.taken));
    toggle.textContent = change.taken ? "Undo this edit" : "Take this edit";
    toggle.closest("li")?.classList.toggle("left", !change.taken);
  };
  toggle.addEventListener("click", () => {
    change.taken = !change.taken;
    label();
    changed();
  });
  const item = element("li", { class: change.taken ? false : "left" }, ...parts, toggle);
  label();
  return item;
}

function changed() {
  showComposed({});
  scoreSoon();
}

function showComposed(spans) {
  const pieces = composed(shown.changes);
  $("composed").replaceChildren(...markedPieces(cutPieces(pieces, spans)));
}

const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 3 }));

function showRewards(rewards) {
  const original = candidates().find((one) => one.rewritten_response === answer.response_post);
  $("rewards-part").hidden = Object.keys(rewards).length === 0;
  $("rewards").replaceChildren(...Object.entries(rewards).map(([name, value]) => element("tr", {},
    element("th", { scope: "row" }, name, element("span", { class: "about" }, terms[name]?.about || "")),
    element("td", {}, number(original?.rewards[name])),
    element("td", {}, number(value)),
    element("td", {}, number(terms[name]?.weight)))));
}

// ---- the composed reply, read again

function scoreSoon() {
  clearTimeout(rescoring);
  $("now").textContent = "";
  rescoring = setTimeout(() => rescore().catch(() => { /* colours are missing; the texts are there */ }), RESCORE_MILLISECONDS);
}

async function rescore(signal) {
  clearTimeout(rescoring);
  const text = joined(composed(shown.changes));
  if (text.trim() === "") return;
  const found = await ask("/score", { seeker_post: asked.seeker_post, response_post: text }, signal);
  if (text !== joined(composed(shown.changes))) return; // changed again meanwhile
  showComposed(found.spans);
  $("now").textContent = `Empathy ${found.empathy} of 6 as it stands here`;
  $("result-legend").replaceChildren(...legend(found));
}

$("copy").addEventListener("click", async () => {
  const text = joined(composed(shown.changes));
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch { // only in a secure context: mark the text, so that the keyboard can copy it
    getSelection().selectAllChildren($("composed"));
    say("The reply is marked: press Ctrl and C to copy it.");
  }
});
