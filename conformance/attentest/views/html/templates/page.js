"use strict";
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  for (const one of $$(".control")) one.hidden = false;

  // The theme: the system's, until somebody chooses.
  const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
  const theme = $("#theme");
  const remembered = () => {
    try { return localStorage.getItem("attentest-theme") || ""; } catch { return ""; }
  };
  const paint = (name) => {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    const word = THEMES.find(([one]) => one === name)[1];
    $("span", theme).textContent = `: ${word}`;
    theme.setAttribute("aria-label", `Theme: ${word}`);
  };
  theme.addEventListener("click", () => {
    const place = THEMES.findIndex(([name]) => name === (document.documentElement.dataset.theme || ""));
    const name = THEMES[(place + 1) % THEMES.length][0];
    try { localStorage.setItem("attentest-theme", name); } catch { /* a page that may keep nothing */ }
    paint(name);
  });
  paint(THEMES.some(([name]) => name === remembered()) ? remembered() : "");

  // Long tables of figures: the rows that have all words, wherever they are in it.
  for (const form of $$(".rows")) {
    const rows = $$("tbody tr", form.closest("details")), box = $("input", form);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = $$("th, td", row).map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      $("output", form).textContent = `${shown} of ${rows.length} rows`;
    });
  }

  if (!$("#data")) return;
  const data = JSON.parse($("#data").textContent);
  const clauses = new Map(data.clauses.map((one) => [one.slug, one]));
  const cases = data.cases.map((one) => new Map(Object.entries(one)));
  const columns = data.backends.map((_, b) => b);
  const grid = $("#grid");
  const lines = $$("tr[data-c]", grid).map((row) => ({
    row, clause: clauses.get(row.dataset.c), cells: $$("td", row),
  }));
  const text = $("#f-text"), chapter = $("#f-chapter"), level = $("#f-level");
  const everything = $("#f-all");
  const statuses = $$("#f-status input"), backends = $$("#f-backend input");

  // The address: "#case/BACKEND/CLAUSE?filters", either part alone, or a place in the page.
  const address = () => {
    const [path, query = ""] = location.hash.slice(1).split("?");
    return { path, query: location.hash.includes("?") ? new URLSearchParams(query) : null };
  };
  const filters = () => {
    const found = new URLSearchParams();
    if (text.value) found.set("text", text.value);
    if (chapter.value) found.set("chapter", chapter.value);
    if (level.value) found.set("level", level.value);
    for (const one of statuses) if (one.checked) found.append("verdict", one.value);
    for (const one of backends) if (!one.checked) found.append("without", data.backends[one.value].name);
    if (everything.checked) found.set("rows", "all");
    return found.toString();
  };
  const write = (path) => {
    const query = filters();
    const hash = path || query ? `#${path}${query ? `?${query}` : ""}` : "";
    history.replaceState(null, "", hash || location.pathname + location.search);
  };
  const restore = (query) => {
    text.value = query.get("text") || "";
    chapter.value = query.get("chapter") || "";
    level.value = query.get("level") || "";
    everything.checked = query.get("rows") === "all";
    if (chapter.selectedIndex < 0) chapter.value = "";
    if (level.selectedIndex < 0) level.value = "";
    for (const one of statuses) one.checked = query.getAll("verdict").includes(one.value);
    for (const one of backends) one.checked = !query.getAll("without").includes(data.backends[one.value].name);
  };

  // The filters. What is searched are clauses, messages, and the causes with their lines. A row in
  // which all pass or provide nothing is collapsed until it is looked for.
  const PLAIN = new Set(["pass", "absent"]);
  const CONFORM = new Set(data.conforming);
  const shown = () => columns.filter((b) => !backends.length || backends[b].checked);
  const because = (b, slug) => data.causes[b].clauses[slug];
  const says = (clause, inView, wanted) => !wanted || [clause.slug, clause.text,
    ...inView.flatMap((b) => [(cases[b].get(clause.slug) || {}).message,
      data.causes[b].words[because(b, clause.slug)]]),
  ].some((one) => one && one.toLowerCase().includes(wanted));
  const apply = () => {
    const inView = shown();
    const verdicts = new Set(statuses.filter((one) => one.checked).map((one) => one.value));
    const wanted = text.value.trim().toLowerCase();
    const totals = columns.map(() => [0, 0]);
    const searches = everything.checked || verdicts.size > 0 || Boolean(wanted);
    const tallies = new Map([...grid.tBodies].map((body) => [body, { rows: 0, conform: 0, judged: 0 }]));
    let rows = 0, matching = 0, all = 0, collapsed = 0;
    for (const one of $$("[data-b]", grid)) one.hidden = !inView.includes(Number(one.dataset.b));
    for (const { row, clause, cells } of lines) {
      const found = inView.map((b) => cases[b].get(clause.slug)).filter(Boolean);
      all += found.length;
      const fits = (one) => one && (!verdicts.size || verdicts.has(one.status));
      const visible = (!chapter.value || clause.chapter === chapter.value) &&
        (!level.value || clause.level === level.value) &&
        (!verdicts.size || found.some(fits)) && says(clause, inView, wanted);
      const plain = !searches && found.length && found.every((one) => PLAIN.has(one.status));
      row.hidden = !visible || plain;
      if (!visible) continue;
      const tally = tallies.get(row.parentElement);
      tally.rows += 1;
      rows += 1;
      collapsed += plain ? 1 : 0;
      for (const b of inView) {
        const one = cases[b].get(clause.slug);
        cells[b].classList.toggle("dim", verdicts.size > 0 && !fits(one));
        if (!one) continue;
        matching += fits(one) ? 1 : 0;
        const conforms = CONFORM.has(one.status) ? 1 : 0, judged = one.status === "absent" ? 0 : 1;
        totals[b][0] += conforms;
        totals[b][1] += judged;
        tally.conform += conforms;
        tally.judged += judged;
      }
    }
    for (const [body, tally] of tallies) {
      body.hidden = !tally.rows;
      $(".tally", body).textContent = `${tally.conform} of ${tally.judged} conform`;
    }
    for (const cell of $$("tfoot td", grid)) {
      const b = Number(cell.dataset.b);
      if (cases[b].size) cell.textContent = `${totals[b][0]}/${totals[b][1]}`;
    }
    $("#count").textContent = `${rows} of ${lines.length} clauses, ${matching} of ${all} verdicts of ` +
      `${inView.length} of ${columns.length} ${columns.length === 1 ? "backend" : "backends"}.` +
      (collapsed ? ` ${collapsed} ${collapsed === 1 ? "row" : "rows"} in which all pass or provide nothing: ` +
        `choose "all rows" to see them.` : "");
    reachable();
  };
  const form = $("#filters");
  const changed = () => { apply(); write(""); };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  $("#f-clear").addEventListener("click", () => { restore(new URLSearchParams()); changed(); });

  // The keyboard in the matrix: one verdict is in the tab order, the arrows move it.
  let current = null;
  const buttons = (row) => $$("td:not([hidden]) button", row);
  const visibleRows = () => lines.filter(({ row }) => !row.hidden && buttons(row).length).map(({ row }) => row);
  const reachable = (button = current) => {
    if (!button || !button.isConnected || button.closest("[hidden]")) button = visibleRows().flatMap(buttons)[0];
    if (current) current.tabIndex = -1;
    current = button || null;
    if (current) current.tabIndex = 0;
  };
  const nearest = (row, b) => buttons(row).reduce((best, one) =>
    Math.abs(one.parentElement.dataset.b - b) < Math.abs(best.parentElement.dataset.b - b) ? one : best);
  const moved = (button, key, far) => {
    const row = button.closest("tr"), own = buttons(row), rows = visibleRows();
    const b = Number(button.parentElement.dataset.b), place = own.indexOf(button), line = rows.indexOf(row);
    switch (key) {
      case "ArrowRight": return own[place + 1];
      case "ArrowLeft": return own[place - 1];
      case "ArrowDown": return rows[line + 1] && nearest(rows[line + 1], b);
      case "ArrowUp": return rows[line - 1] && nearest(rows[line - 1], b);
      case "Home": return far ? buttons(rows[0])[0] : own[0];
      case "End": return far ? buttons(rows.at(-1)).at(-1) : own.at(-1);
      default: return null;
    }
  };
  grid.addEventListener("keydown", (event) => {
    const button = event.target.closest("td button");
    const next = button && moved(button, event.key, event.ctrlKey || event.metaKey);
    if (!next) return;
    event.preventDefault();
    reachable(next);
    next.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  grid.addEventListener("focusin", (event) => {
    const button = event.target.closest("td button");
    if (button) reachable(button);
  });

  // The dialog. All texts of others go through textContent.
  const dialog = $("#case"), body = $("#case-body");
  const make = (tag, content, name) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...[content].flat().filter((one) => one !== undefined));
    return element;
  };
  const part = (title, ...content) => content.some(Boolean) ? [make("h3", title), ...content.filter(Boolean)] : [];
  const list = (items, tag = "ul") => items && items.length ? make(tag, items.map((one) => make("li", one))) : null;
  const selected = (pre) => {
    const range = document.createRange();
    range.selectNodeContents(pre);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand("copy");
  };
  const copying = (pre) => {
    const button = make("button", "Copy", "copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      let done = true;
      try { await navigator.clipboard.writeText(pre.textContent); } catch { done = selected(pre); }
      button.textContent = done ? "Copied" : "Select and copy it by hand";
    });
    return button;
  };
  const code = (content) => {
    const pre = make("pre", content);
    pre.tabIndex = 0;
    return pre;
  };
  const badge = (cell) => {
    const status = cell.className.split(" ").find((one) => one.startsWith("s-"));
    return make("span", [...$("button", cell).cloneNode(true).childNodes], `badge ${status}`);
  };
  for (const one of $$(".script pre")) one.before(copying(one));
  const jump = (b, slug) => {
    const number = because(b, slug);
    if (number === undefined) return null;
    const link = make("a", $(`#cause-${b}-${number + 1} h4`).textContent);
    link.href = `#cause-${b}-${number + 1}`;
    return make("p", link);
  };
  const details = (clause, found, b) => {
    const example = found.counterexample;
    const script = example && example.code ? code(example.code) : null;
    return [
      make("p", clause.text),
      ...part("Found", found.message && make("p", found.message), list(found.notes)),
      ...part("Expected to fail", found.known && make("p", found.known)),
      ...part("Cause", jump(b, clause.slug)),
      ...part("Follows from", found.follows && make("p", found.follows)),
      ...part("Likely cause", list(found.causes)),
      ...part("Counterexample", example && list(example.steps, "ol")),
      example && (example.actual || example.expected) ? make("div", [
        make("div", part("Found values", example.actual && code(example.actual))),
        make("div", part("Expected values", example.expected && code(example.expected))),
      ], "two") : undefined,
      ...(script ? [copying(script), ...part("Reproduction", script)] : []),
      ...part("Why it matters", clause.reason && make("p", clause.reason)),
      ...part("Source", clause.source && make("p", clause.source)),
    ];
  };
  const facts = (cell, clause, found) => make("div", [
    badge(cell), make("span", clause.level), make("span", clause.component.replaceAll("_", " ")),
    make("span", `depth: ${clause.depth}`), clause.kind && make("span", `kind: ${clause.kind}`),
    found.budget === undefined ? undefined : make("span", `${(100 * found.budget).toPrecision(3)} % of a tolerance used`),
    found.seconds === undefined ? undefined : make("span", `${found.seconds} s`),
  ], "facts");
  const path = (b, slug) => `case/${encodeURIComponent(data.backends[b].name)}/${slug}`;
  let opener = null;
  const show = (b, slug) => {
    const line = lines.find(({ clause }) => clause.slug === slug);
    const found = cases[b] && cases[b].get(slug) || { message: "It was asked for, and there is no verdict." };
    const cell = line && line.cells[b];
    if (!cell || !$("button", cell)) return false;
    opener = $("button", cell);
    $("#case-title").textContent = `${slug}, ${data.backends[b].label}`;
    body.replaceChildren(facts(cell, line.clause, found), ...details(line.clause, found, b).filter(Boolean));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    $("#case-title").focus();
    return true;
  };
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (!cell || !$("button", cell)) return;
    const b = Number(cell.dataset.b), slug = cell.parentElement.dataset.c;
    if (show(b, slug)) write(path(b, slug));
  });
  $(".close", dialog).addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    write("");
    // The browser gives the focus back; where the address opened it, there is nothing to go back to.
    const focused = document.activeElement;
    const lost = !focused || focused === document.body || dialog.contains(focused);
    if (lost && opener && !opener.closest("[hidden]")) opener.focus();
  });

  // Where the address leads.
  const unhide = (row) => {
    if (!row.hidden) return;
    restore(new URLSearchParams());
    everything.checked = true;
    apply();
  };
  const follow = () => {
    const { path: place, query } = address();
    if (query) { restore(query); apply(); }
    const [kind, name, ...rest] = place.split("/");
    let slug, backend;
    try { [slug, backend] = [decodeURIComponent(rest.join("/")), decodeURIComponent(name || "")]; } catch { return; }
    if (kind === "case") {
      const b = data.backends.findIndex((one) => one.name === backend);
      if (b >= 0) show(b, slug);
    } else if (dialog.open) dialog.close();
    if (kind === "clause") {
      const line = lines.find(({ clause }) => clause.slug === backend);
      if (line) { unhide(line.row); line.row.scrollIntoView({ block: "center" }); }
    }
  };
  addEventListener("hashchange", follow);
  apply();
  follow();
})();
