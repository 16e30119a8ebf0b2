"use strict";
// Hover labels for the charts' marks (their aria-label, one fact a line), a filter, and open details for print.
(() => {
  const tip = document.getElementById("tip");
  const reach = 28;
  for (const chart of document.querySelectorAll(".chart")) {
    const marks = [...chart.querySelectorAll("path[aria-label], i[aria-label], .bar[aria-label]")];
    let lit = null;
    const clear = () => {
      if (lit) lit.classList.remove("lit");
      lit = null;
      tip.hidden = true;
    };
    const near = (event) => {
      let best = null;
      let least = Infinity;
      for (const mark of marks) {
        const box = mark.getBoundingClientRect();
        const dx = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
        const dy = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
        const distance = dx * dx + dy * dy;
        if (distance < least) { least = distance; best = { mark, box }; }
      }
      clear();
      if (!best || least > reach * reach) return;
      lit = best.mark;
      lit.classList.add("lit");
      tip.textContent = lit.getAttribute("aria-label");
      tip.hidden = false;
      const x = best.box.left + best.box.width / 2 - tip.offsetWidth / 2;
      const above = best.box.top - tip.offsetHeight - 10;
      tip.style.left = `${Math.max(8, Math.min(x, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
      tip.style.top = `${above < 8 ? best.box.bottom + 10 : above}px`;
    };
    chart.addEventListener("pointermove", near);
    chart.addEventListener("pointerdown", near);
    chart.addEventListener("pointerleave", clear);
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  // The page of all patterns: rows that hold every word that is typed.
  const filter = document.querySelector(".filter");
  if (filter) {
    filter.hidden = false;
    const rows = [...document.querySelectorAll(".cards tbody tr")];
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
  }
  addEventListener("beforeprint", () => {
    for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  });
})();
