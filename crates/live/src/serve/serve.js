// Keeps the page of a run that goes on up to date: the server sends the part that changed, escaped as in a report.
"use strict";
const now = document.querySelector("[data-events]");
if (now) {
  const said = document.getElementById("said");
  const say = (text) => { if (said.textContent !== text) said.textContent = text; };
  const source = new EventSource(now.dataset.events);
  source.addEventListener("now", (event) => {
    const message = JSON.parse(event.data);
    now.innerHTML = message.html;
    say(message.said);
    if (message.over) source.close();
  });
  source.addEventListener("error", () => say("The connection to the server is lost; trying again."));
}
