// Keeps the page of a run that goes on up to date: the server sends the part that changed, escaped as in a report.
"use strict";
const now = document.querySelector("[data-events]");
if (now) {
  const said = document.getElementById("said");
  const lost = document.getElementById("lost");
  let heard = new Date();
  const connected = (yes) => { lost.hidden = yes; now.classList.toggle("old", !yes); };
  const say = (text) => { if (said.textContent !== text) said.textContent = text; };
  const source = new EventSource(now.dataset.events);
  source.addEventListener("now", (event) => {
    const message = JSON.parse(event.data);
    heard = new Date();
    now.innerHTML = message.html;
    say(message.said);
    connected(true);
    if (message.over) source.close();
  });
  source.addEventListener("open", () => connected(true));
  source.addEventListener("error", () => {
    const then = source.readyState === EventSource.CLOSED ? "load the page again" : "trying again";
    lost.textContent = `The connection to the server is lost; ${then}. What is below is as of ${heard.toLocaleTimeString()}.`;
    connected(false);
  });
}
