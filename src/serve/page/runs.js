// The list of runs: filter, order, groups, pages, and which runs are chosen.
import { palette } from "/chart.js";
import { age, separated, shortNumber } from "/numbers.js";
import { make } from "/views.js";

const columns = [["run", (run) => run.name], ["state", (run) => run.state], ["step", (run) => run.step],
  ["loss", (run) => run.loss], ["newest", (run) => run.newest]];
const narrow = matchMedia("(max-width: 900px)");
const byName = new Intl.Collator(undefined, { numeric: true }).compare;

function groupedBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/// What runs of one group share: their name without a number at the end; of "search/0001", the search.
export function groupOf(name) {
  if (name.includes("/")) return name.slice(0, name.lastIndexOf("/"));
  return name.replace(/[-_. =]*(seed)?[-_. =]*\d+(\.\d+)?(e-?\d+)?$/i, "") || name.replace(/\d+$/, "") || name;
}

/// Gives runs of one name the directory that they are in, too.
export function tellApart(runs) {
  const same = groupedBy(runs, (run) => run.title);
  for (const run of runs) {
    const alone = same.get(run.title).length === 1, parts = run.path.split("/");
    run.name = alone ? run.title : [parts.at(-run.title.split("/").length - 1), run.title].join("/");
  }
}

export class RunList {
  /// element: to fill; pick(places): the runs that were chosen; picked(): those that are shown
  constructor(element, { pick, picked }) {
    Object.assign(this, { pick, picked, runs: [], words: "", column: 0, down: false, grouped: false, open: new Set(), page: 0, rows: new Map() });
    this.fold = make("button", "", "fold");
    this.fold.addEventListener("click", () => { element.classList.toggle("open"); this.show(); });
    this.element = element;
    this.find = make("input");
    Object.assign(this.find, { type: "search", id: "find", placeholder: "filter runs (/)" });
    this.find.setAttribute("aria-label", "filter runs");
    this.find.addEventListener("input", () => { this.words = this.find.value; this.page = 0; this.show(); });
    this.find.addEventListener("keydown", (event) => { if (event.key === "Escape") this.find.blur(); });
    this.group = make("button", "group");
    this.group.title = "group runs whose names differ by a number at the end";
    this.group.addEventListener("click", () => { this.grouped = !this.grouped; this.page = 0; this.show(); });
    this.head = make("div", "", "columns");
    this.list = make("div", "", "rows");
    this.note = make("p", "", "note");
    this.note.setAttribute("role", "status");
    this.pages = make("div", "", "pages");
    const tools = make("div", "", "find"), body = make("div", "", "body");
    tools.append(this.find, this.group);
    body.append(tools, this.head, this.note, this.list, this.pages);
    element.append(this.fold, body);
    narrow.addEventListener("change", () => this.show());
  }

  /// runs: all of them; told: a sentence on what was chosen, or nothing
  update(runs, told) {
    this.runs = runs;
    this.note.textContent = told;
    this.show();
  }

  /// Runs that pass the filter, in their order.
  shown() {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean), value = columns[this.column][1];
    const passes = (run) => words.every((word) => `${run.name} ${run.model} ${run.state}`.toLowerCase().includes(word));
    const missing = (run) => value(run) === undefined || value(run) === null || value(run) === "";
    const order = (a, b) => missing(a) - missing(b) || (this.down ? -1 : 1) *
      (typeof value(a) === "string" ? byName(value(a), value(b)) : value(a) - value(b) || 0) || byName(a.name, b.name);
    return this.runs.filter(passes).sort(order);
  }

  /// Rows to show: runs, and groups of several with their runs below them where they are open.
  entries() {
    const runs = this.shown();
    if (!this.grouped) return runs.map((run) => ({ run }));
    return [...groupedBy(runs, (run) => groupOf(run.name))].flatMap(([name, members]) =>
      members.length === 1 ? [{ run: members[0] }]
        : [{ name, members }, ...(this.open.has(name) ? members.map((run) => ({ run, inner: true })) : [])]);
  }

  show() {
    const entries = this.entries(), size = narrow.matches ? 20 : 50, last = Math.max(0, Math.ceil(entries.length / size) - 1);
    this.page = Math.min(this.page, last);
    const picked = this.picked(), part = entries.slice(this.page * size, (this.page + 1) * size);
    this.fold.textContent = `Runs: ${picked.length} of ${separated(this.runs.length)} shown ${this.element.classList.contains("open") ? "▴" : "▾"}`;
    this.fold.setAttribute("aria-expanded", this.element.classList.contains("open"));
    this.group.setAttribute("aria-pressed", this.grouped);
    this.showHead();
    const rows = part.map((entry) => entry.run ? this.runRow(entry, picked) : this.groupRow(entry, picked));
    if (!rows.length) rows.push(make("p", this.runs.length ? "No run passes the filter." : "There are no runs here yet.", "empty"));
    if (rows.length !== this.list.children.length || rows.some((row, i) => row !== this.list.children[i])) this.list.replaceChildren(...rows);
    this.showPages(size, last, entries.length);
  }

  showHead() {
    if (!this.head.firstChild) {
      this.head.append(...columns.map(([name], i) => {
        const button = make("button", name);
        button.addEventListener("click", () => {
          this.down = this.column === i ? !this.down : name === "newest";
          this.column = i;
          this.page = 0;
          this.show();
        });
        return button;
      }));
    }
    [...this.head.children].forEach((button, i) => {
      button.textContent = columns[i][0] + (i === this.column ? this.down ? " ↓" : " ↑" : "");
      button.setAttribute("aria-sort", i !== this.column ? "none" : this.down ? "descending" : "ascending");
    });
  }

  showPages(size, last, count) {
    const button = (words, page) => {
      const element = make("button", words);
      element.disabled = page < 0 || page > last;
      element.addEventListener("click", () => { this.page = page; this.show(); this.list.scrollTop = 0; });
      return element;
    };
    this.pages.hidden = last === 0;
    const end = Math.min((this.page + 1) * size, count);
    this.pages.replaceChildren(button("‹", this.page - 1),
      make("span", `${this.page * size + 1} – ${end} of ${separated(count)}`), button("›", this.page + 1));
  }

  /// The row of this key, made once: what has the focus, or is being clicked at, stays where it is.
  row(key, kind, act) {
    if (!this.rows.has(key)) {
      const row = make(kind, "", "run"), tick = make("input");
      tick.type = "checkbox";
      tick.addEventListener("change", () => act(tick.checked));
      row.append(tick, make("span", "", "name"), make("span", "", "step"), make("span", "", "loss"), make("span", "", "newest"),
        make("span", "", "facts"));
      this.rows.set(key, row);
    }
    return this.rows.get(key);
  }

  fill(row, values) {
    for (const [name, words] of Object.entries(values)) {
      const cell = row.querySelector(`.${name}`);
      if (cell.textContent !== words) cell.textContent = words;
    }
  }

  runRow({ run, inner }, picked) {
    const row = this.row(run.run, "label", (on) => this.pick(on ? [...this.picked(), run.run] : this.picked().filter((place) => place !== run.run)));
    const chosen = picked.includes(run.run), facts = row.querySelector(".facts");
    row.classList.toggle("inner", Boolean(inner));
    row.firstChild.checked = chosen;
    row.style.borderLeftColor = chosen ? run.colour : "";
    row.title = run.path;
    this.fill(row, { name: run.name, step: shortNumber(run.step), loss: shortNumber(run.loss), newest: age(run.newest) });
    const told = [run.total_steps ? ` · ${Math.floor(100 * run.step / run.total_steps)} % of ${shortNumber(run.total_steps)} steps` : "",
      run.read < 1 ? ` · read ${Math.round(run.read * 100)} %` : "", run.reason && run.state === "failed" ? ` · ${run.reason}` : ""].join("");
    if (facts.textContent !== run.state + told) facts.replaceChildren(make("span", run.state, run.state), told);
    return row;
  }

  groupRow({ name, members }, picked) {
    const places = members.map((run) => run.run);
    const row = this.row(`group ${name}`, "div", (on) => {
      const now = this.rows.get(`group ${name}`).places, others = this.picked().filter((place) => !now.includes(place));
      this.pick(on ? [...others, ...now] : others);
    });
    row.places = places;
    const label = row.querySelector(".name"), losses = members.map((run) => run.loss).filter(Number.isFinite);
    if (!label.firstChild) {
      const button = make("button", "", "link");
      button.addEventListener("click", () => { this.open.has(name) ? this.open.delete(name) : this.open.add(name); this.show(); });
      label.append(button);
    }
    label.firstChild.textContent = `${this.open.has(name) ? "▾" : "▸"} ${name} (${members.length})`;
    row.firstChild.setAttribute("aria-label", `all of ${name}`);
    const chosen = places.filter((place) => picked.includes(place)).length;
    row.firstChild.checked = chosen > 0;
    row.firstChild.indeterminate = chosen > 0 && chosen < places.length;
    const states = [...groupedBy(members, (run) => run.state)].map(([state, some]) => `${some.length} ${state}`).join(", ");
    this.fill(row, { step: shortNumber(Math.max(...members.map((run) => run.step))), loss: losses.length ? shortNumber(Math.min(...losses)) : "–",
      newest: age(Math.max(...members.map((run) => run.newest))), facts: `${states} · the least loss` });
    return row;
  }
}

/// The first runs of those that were chosen, each with a colour of its own, and what is told of the others.
export function coloured(places, runs) {
  const kept = places.slice(0, palette.length), taken = new Set();
  for (const place of kept) {
    const run = runs.get(place);
    if (run.shown && !taken.has(run.colour)) taken.add(run.colour);
    else run.colour = null;
  }
  for (const run of runs.values()) run.shown = kept.includes(run.run);
  for (const place of kept) {
    const run = runs.get(place);
    run.colour ??= palette.find((colour) => !taken.has(colour));
    taken.add(run.colour);
  }
  const told = places.length > kept.length
    ? `${separated(places.length)} runs were chosen, and the first ${kept.length} are shown: there are no more colours that can be told apart.` : "";
  return { kept, told };
}
