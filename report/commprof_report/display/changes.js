"use strict";
/* The marks of a comparison have their names as titles, for the mouse. The arrow keys go from mark to mark of the drawing that has the focus,
   and the name stands below it. */
(() => {
  for (const drawing of document.querySelectorAll(".measure")) {
    const marks = [...drawing.querySelectorAll("path > title")].map((title) => title.parentNode), said = document.createElement("p");
    let at = null;

    function read(place) {
      if (at !== null) marks[at].classList.remove("chosen");
      at = place === null ? null : Math.max(0, Math.min(place, marks.length - 1));
      if (at !== null) marks[at].classList.add("chosen");
      said.textContent = at === null ? "" : marks[at].textContent;
    }

    if (!marks.length) continue;
    said.className = "said";
    said.ariaLive = "polite";
    drawing.after(said);
    drawing.tabIndex = 0;
    onArrows(drawing, () => at, () => marks.length - 1, read);
    drawing.addEventListener("blur", () => read(null));
  }
})();
