// Texts in pieces: a rewrite composed of the edits that were taken, and rationales by their places.
"use strict";

// The reply with some of its edits. changes: as /rewrite gives them, in order; an edit may have `taken`
// and `text`, what the person made of its sentence. Sentences between edits are as they were where all
// edits beside them were left: joining changes a full stop or a space only next to an edit.
function composed(changes) {
  const taken = (change) => change.edited && change.taken;
  if (!changes.some(taken)) return changes.map((change) => ({ text: change.before, change }));
  return changes.map((change, place) => {
    if (change.edited) return { text: change.taken ? newText(change) : change.before, change };
    const beside = [changes[place - 1], changes[place + 1]].filter((one) => one && one.edited);
    const asItWas = beside.length > 0 && !beside.some(taken);
    return { text: asItWas ? change.before : change.after, change };
  });
}

// The sentence of an edit as the person has it, with the white space of the original.
function newText(change) {
  if (change.text === undefined) return change.after;
  const [, start, end] = change.after.match(/^(\s*)[^]*?(\s*)$/);
  return change.text.trim() === "" ? "" : start + change.text.trim() + end;
}

function joined(pieces) {
  return pieces.map((piece) => piece.text).join("");
}

// A text cut wherever a rationale begins or ends. spans: mechanism → [[start, end]], counted in characters
// as Python counts them, which are code points. Gives [{text, mechanisms}].
function cutBySpans(text, spans) {
  const letters = [...text];
  const cuts = new Set([0, letters.length]);
  for (const found of Object.values(spans)) for (const [start, end] of found) cuts.add(start).add(end);
  const places = [...cuts].sort((a, b) => a - b);
  return places.slice(0, -1).map((start, number) => ({
    text: letters.slice(start, places[number + 1]).join(""),
    mechanisms: Object.keys(spans).filter((name) => spans[name].some(([a, b]) => a <= start && start < b)),
  }));
}

// A sentence, and the white space behind it, which is not marked as new.
function apart({ text, change }) {
  const words = text.trimEnd();
  return [{ text: words, change }, { text: text.slice(words.length), change: null }];
}

// Pieces of a rewrite, each cut again by the rationales of the whole. Gives [{text, mechanisms, change}].
function cutPieces(pieces, spans) {
  const marked = cutBySpans(joined(pieces), spans);
  const found = [];
  for (const piece of pieces.flatMap(apart)) {
    let left = [...piece.text];
    while (left.length) {
      const next = marked[0];
      const letters = [...next.text];
      const size = Math.min(left.length, letters.length);
      found.push({ text: left.slice(0, size).join(""), mechanisms: next.mechanisms, change: piece.change });
      left = left.slice(size);
      if (size === letters.length) marked.shift();
      else next.text = letters.slice(size).join("");
    }
  }
  return found;
}
