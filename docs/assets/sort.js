// A click on a heading of the leaderboard sorts it: numbers by size, words by letter, twice for the other way.
document.querySelectorAll('h2[id="leaderboard"]').forEach((heading) => {
  let place = heading.nextElementSibling;
  while (place && !place.querySelector("th") && place.tagName !== "TABLE") place = place.nextElementSibling;
  const table = place && (place.tagName === "TABLE" ? place : place.querySelector("table"));
  if (!table) return;
  table.querySelectorAll("th").forEach((cell, column) => {
    let down = true;
    cell.style.cursor = "pointer";
    cell.title = "Sort";
    cell.addEventListener("click", () => {
      const body = table.tBodies[0];
      const key = (row) => row.cells[column].textContent.trim();
      const size = (row) => parseFloat(key(row).replace("−", "-"));
      const order = (a, b) => {
        const [x, y] = [size(a), size(b)];
        if (isNaN(x) || isNaN(y)) return isNaN(x) && isNaN(y) ? key(a).localeCompare(key(b)) : isNaN(x) ? 1 : -1;
        return down ? y - x : x - y;
      };
      [...body.rows].sort(order).forEach((row) => body.appendChild(row));
      down = !down;
    });
  });
});
