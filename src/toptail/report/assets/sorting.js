// Tables whose headings sort them.

function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", order);
      sortRows(table.tBodies[0], column, order === "ascending" ? 1 : -1);
    });
  });
}

/** Sort by the cells' keys, numbers as numbers; cells without a key stay last. */
function sortRows(body, column, sign) {
  const keyed = [...body.rows].map((row) => ({ row, key: row.cells[column].dataset.key ?? "" }));
  keyed.sort((a, b) => {
    if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
    const difference = Number(a.key) - Number(b.key);
    return sign * (Number.isNaN(difference) ? a.key.localeCompare(b.key) : difference);
  });
  body.append(...keyed.map(({ row }) => row));
}
