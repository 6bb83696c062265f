"use strict";
// Sorting and filtering; the page is complete without them.
const valueOf = (row, column) => row.cells[column].textContent.trim();
const asNumber = (text) => (text === "–" ? -Infinity : parseFloat(text.replace(/,/g, "")));

function sortBy(table, column, isNumber, direction) {
  const compare = isNumber
    ? (one, other) => asNumber(valueOf(one, column)) - asNumber(valueOf(other, column))
    : (one, other) => valueOf(one, column).localeCompare(valueOf(other, column));
  const rows = [...table.tBodies[0].rows].sort((one, other) => direction * compare(one, other));
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const isNumber = heading.classList.contains("number");
      const wasDown = heading.getAttribute("aria-sort") === "descending";
      const wasUp = heading.getAttribute("aria-sort") === "ascending";
      const up = isNumber ? wasDown : !wasUp;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      sortBy(table, column, isNumber, up ? 1 : -1);
    });
  });
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.className = "filter";
  label.append("Show only names with ", input);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !valueOf(row, 0).toLowerCase().includes(wanted);
  });
  table.parentElement.before(label);
}

// links open closed parts, and printing opens all of them
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
