// Keeps the admin page up to date: fetches it again and puts its content in place of the old one.
"use strict";
async function update() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const open = document.activeElement?.getAttribute("aria-label");
        document.querySelector("main").replaceWith(page.querySelector("main"));
        if (open) document.querySelector(`main [aria-label="${CSS.escape(open)}"]`)?.focus();
      }
    } catch { /* the server is away: try again */ }
  }
  setTimeout(update, 5000);
}
setTimeout(update, 5000);
