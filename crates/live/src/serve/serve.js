// Keeps the page of a run that goes on up to date: asks for the page again and takes over what changes, escaped as in a report.
"use strict";
const now = document.getElementById("live");
if (now && "goesOn" in now.dataset) {
  const said = document.getElementById("said");
  const lost = document.getElementById("lost");
  let heard = new Date();
  const connected = (yes) => { lost.hidden = yes; now.classList.toggle("old", !yes); };
  const look = async () => {
    let over = false;
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [newest, sentence] = ["live", "said"].map((id) => page.getElementById(id));
      if (now.innerHTML !== newest.innerHTML) now.innerHTML = newest.innerHTML;
      if (said.textContent !== sentence.textContent) said.textContent = sentence.textContent;
      over = !("goesOn" in newest.dataset);
      heard = new Date();
      connected(true);
    } catch {
      lost.textContent = `The connection to the server is lost, or the run is gone; trying again. What is below is as of ${heard.toLocaleTimeString()}.`;
      connected(false);
    }
    if (!over) setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}
