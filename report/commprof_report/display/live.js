"use strict";
/* Shows what the server has drawn of the last look, again and again. */
(() => {
  const now = document.getElementById("now"), connection = document.getElementById("connection");
  async function renew() {
    try {
      const answer = await fetch("now");
      if (!answer.ok) throw new Error(answer.statusText);
      now.innerHTML = await answer.text();
      connection.textContent = "";
    } catch {
      connection.textContent = "No answer: hvprof-report top has ended, or the connection to it has.";
    }
  }
  setInterval(renew, 1000 * Number(now.dataset.every));
})();
