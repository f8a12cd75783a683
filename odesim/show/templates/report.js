(function () {
  "use strict";
  var all = function (what, where) { return Array.from((where || document).querySelectorAll(what)); };
  // Links lead into closed lists of runs: open what hides their target.
  function reveal() {
    var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
  var bar = document.querySelector(".filter");
  if (!bar) return;
  var search = bar.querySelector("input"), answer = "";
  function show() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    all("[data-answers]").forEach(function (item) {
      var text = item.textContent.toLowerCase();
      var answers = item.dataset.answers.split(" ");
      item.hidden = (answer !== "" && answers.indexOf(answer) < 0) ||
        !words.every(function (word) { return text.indexOf(word) >= 0; });
    });
    all(".group").forEach(function (group) { group.hidden = !group.querySelector(".claim:not([hidden])"); });
    all("button", bar).forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.dataset.show === answer));
    });
    var rows = all(".verdicts tbody tr");
    bar.querySelector("output").textContent =
      rows.filter(function (row) { return !row.hidden; }).length + " of " + rows.length;
  }
  bar.addEventListener("click", function (event) {
    var button = event.target.closest("button");
    if (button) { answer = button.dataset.show; show(); }
  });
  search.addEventListener("input", show);
  function value(row, column) {
    var cell = row.cells[column];
    return cell.dataset.sort || cell.textContent.trim();
  }
  all(".verdicts").forEach(function (table) {
    var body = table.tBodies[0], heads = all("th", table);
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.from(body.rows).sort(function (a, b) {
          var order = value(a, column).localeCompare(value(b, column), "en", { numeric: true });
          return down ? -order : order;
        }).forEach(function (row) { body.append(row); });
      });
    });
  });
  bar.hidden = false;
  var asked = /^#show=(confirmed|consistent|refuted|inconclusive)$/.exec(location.hash);
  if (asked) answer = asked[1];
  show();
})();
