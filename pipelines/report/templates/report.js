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
  // Rows that hold every word that is typed: of the table that the filter names, else of the page of all patterns.
  for (const filter of document.querySelectorAll(".filter")) {
    filter.hidden = false;
    const rows = [...document.querySelectorAll(filter.dataset.rows || ".cards tbody tr")];
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
  }
  // Rows in the order of a column: numbers from the largest on, texts from A on; once more turns the order around.
  for (const select of document.querySelectorAll(".order")) {
    const table = document.querySelector(select.dataset.table);
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const asItCame = [...body.rows];
    const sort = (column, backwards) => {
      const text = (row) => row.cells[column].textContent;
      const key = (row) => row.cells[column].dataset.key;
      const number = asItCame.some((row) => key(row) !== undefined);
      const value = (row) => (key(row) === undefined ? -Infinity : Number(key(row)));
      const sign = backwards ? -1 : 1;
      const order = number
        ? (a, b) => sign * (value(a) === value(b) ? 0 : value(b) - value(a))
        : (a, b) => sign * text(a).localeCompare(text(b), undefined, { numeric: true });
      body.append(...[...asItCame].sort(order));
      heads.forEach((head, at) => {
        if (at === column) head.setAttribute("aria-sort", number === backwards ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
    };
    heads.forEach((head, at) => {
      const option = new Option(head.textContent, at);
      select.append(option);
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const number = asItCame.some((row) => row.cells[at].dataset.key !== undefined);
        sort(at, head.getAttribute("aria-sort") === (number ? "descending" : "ascending"));
        select.value = at;
      });
    });
    select.value = heads.findIndex((head) => head.classList.contains("time"));
    select.addEventListener("change", () => sort(Number(select.value), false));
    select.closest(".tools").hidden = false;
  }
  addEventListener("beforeprint", () => {
    for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  });
})();
