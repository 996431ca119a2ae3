// The page: the list of runs, the views, keys, and what is new.
import { palette } from "/chart.js";
import { ask, follow } from "/data.js";
import { hasMistakes, mistakes } from "/mistakes.js";
import { RunList, coloured, tellApart } from "/runs.js";
import { searches } from "/search.js";
import * as plain from "/views.js";

const views = { ...plain, mistakes, searches };

const names = [["curves", "Curves"], ["time", "Step time"], ["ranks", "Ranks"], ["history", "Checkpoints"], ["log", "Log"],
  ["deck", "Deck"], ["pictures", "Pictures"], ["searches", "Searches"], ["mistakes", "Mistakes"]];
const keys = [["1 – 9", "a view"], ["j, k", "next, previous run"], ["a", `overlay up to ${palette.length} runs, or show one`],
  ["x", "steps or time below the curves"], ["l", "logarithmic loss"], ["s", "smoothing"], ["0", "whole range again"],
  ["/", "filter of the log, the deck or the runs"], ["t", "dark or light"], ["?", "these keys"], ["Esc", "close"]];
const at = (id) => document.getElementById(id);

const runs = new Map(); // by place: the overview, details, data, colour
const state = {
  view: "curves", picked: [], axis: "step", log: false, smooth: 0, range: null, filter: "",
  chosen: () => state.picked.map((place) => runs.get(place)).filter((run) => run?.details),
  runAt: (path) => [...runs.values()].find((run) => run.path === path)?.run,
  open: (place) => { state.view = "curves"; pick([place]); },
  zoom: (from, to) => { state.range = from === null ? null : [from, to]; loadData().then(refresh); },
};
let source, update, late, list, told = "", waits = false;

function showRuns() {
  const all = [...runs.values()];
  tellApart(all);
  list.update(all, told);
}

/// Few times per second, however many runs there are.
function showRunsSoon() {
  if (waits) return;
  waits = true;
  setTimeout(() => { waits = false; showRuns(); }, 100);
}

function add(run) {
  if (!runs.has(run.run)) runs.set(run.run, {});
  Object.assign(runs.get(run.run), run, { title: run.name }); // the same object: answers to questions are on their way to it
}

async function loadDetails() {
  await Promise.all(state.picked.map(async (place) => {
    const run = runs.get(place);
    run.details = await ask("/api/run", { run: place });
    const start = run.details.events.find((each) => each.event === "start");
    run.start = start ? Date.parse(start.time) / 1000 : 0;
  }));
}

async function loadData() {
  await Promise.all(state.chosen().map(async (run) => {
    const columns = run.details.columns.filter((name) => !["elapsed_s", "epoch"].includes(name)).slice(0, 60);
    const question = { run: run.run, axis: state.axis, columns: columns.join(","), buckets: Math.min(1000, innerWidth) };
    const shift = state.axis === "time" ? run.start : 0;
    if (state.range) Object.assign(question, { from: state.range[0] + shift, to: state.range[1] + shift });
    const data = await ask("/api/series", question);
    data.x = data.x.map((value) => value - shift);
    run.data = data;
  }));
}

/// Adds new rows to what is shown; too many are asked for again, by buckets.
function addRows({ run: place, step, time, columns, newest_step }) {
  const run = runs.get(place);
  if (!run?.data) return;
  run.details.newest_step = newest_step;
  const grown = run.data.x.length + step.length > 4000 || Object.keys(columns).some((name) => !run.details.columns.includes(name));
  if (grown) { reload(); return; }
  if (state.range) return;
  run.data.x.push(...(state.axis === "time" ? time.map((each) => each - run.start) : step));
  for (const [name, curve] of Object.entries(run.data.curves)) {
    const values = columns[name] ?? step.map(() => null);
    curve.mean.push(...values);
    curve.min?.push(...values);
    curve.max?.push(...values);
  }
  refresh("rows");
}

/// Few times per second, however much comes.
function refresh(changed = "all") {
  if (late?.has(changed)) return;
  if (late) { late.add(changed); return; }
  late = new Set([changed]);
  setTimeout(() => {
    const all = late;
    late = null;
    if (update) for (const each of all) update(each);
  }, 60);
}

let reloading = false, reloads = false; // now; and once more afterwards
async function reload() {
  reloads = true;
  if (reloading) return;
  reloading = true;
  try {
    while (reloads) {
      reloads = false;
      await loadDetails();
      await loadData();
      refresh();
    }
  } finally { reloading = false; }
}

function tools() {
  const bar = views.make("div", "", "tools");
  const button = (words, pressed, act) => {
    const element = views.make("button", words);
    element.setAttribute("aria-pressed", pressed);
    element.addEventListener("click", act);
    bar.append(element);
  };
  if (state.view === "curves" || state.view === "time") {
    button(state.axis === "time" ? "by time" : "by step", state.axis === "time", () => press("x"));
    button("smooth", state.smooth > 0, () => press("s"));
    if (state.view === "curves") button("log loss", state.log, () => press("l"));
    if (state.range) button("whole range", false, () => press("0"));
  }
  if (state.view === "log" || state.view === "deck") {
    const field = views.make("input");
    field.type = "search";
    field.id = "filter";
    field.placeholder = "filter (/)";
    field.value = state.filter;
    field.setAttribute("aria-label", "filter");
    field.addEventListener("input", () => { state.filter = field.value; refresh("filter"); });
    bar.append(field);
  }
  return bar;
}

function show() {
  const shown = names.filter(([view]) => view !== "mistakes" || state.view === view || state.chosen().some(hasMistakes));
  at("views").replaceChildren(...shown.map(([view, words], i) => {
    const button = views.make("button", words);
    button.title = `${words} (${i + 1})`;
    button.dataset.view = view;
    if (view === state.view) button.setAttribute("aria-current", "page");
    button.addEventListener("click", () => { state.view = view; show(); });
    return button;
  }));
  update = undefined;
  const content = views.make("div");
  at("view").replaceChildren(tools(), content);
  if (state.chosen().length || state.view === "searches") update = views[state.view](state, content);
  else content.append(views.make("p", runs.size ? "Tick a run." : "There are no runs here yet; a run appears when it begins.", "empty"));
}

async function pick(places) {
  ({ kept: state.picked, told } = coloured(places, runs));
  showRuns();
  source?.close();
  source = follow(state.picked, {
    overview: (run) => {
      const first = runs.size === 0;
      add(run);
      showRunsSoon();
      if (first && !state.picked.length) pick([run.run]);
    },
    rows: addRows,
    event: ({ run, event }) => {
      const details = runs.get(run)?.details;
      if (!details) return;
      if (["start", "end", "resume", "failure"].includes(event.event)) { reload(); return; }
      details.events.push(event);
      refresh("event");
    },
    again: reload,
    log: () => refresh("log"),
    search: () => refresh("searches"),
  }, (word) => {
    at("link").textContent = word === "live" ? "live" : "the server does not answer";
    at("link").classList.toggle("lost", word !== "live");
  });
  await loadDetails();
  await loadData();
  show();
}

function theme(next) {
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  if (state.chosen().length) show();
}

function press(key) {
  const place = names[Number(key) - 1], order = list.shown().map((run) => run.run), here = order.indexOf(state.picked[0]);
  if (place) { state.view = place[0]; show(); }
  else if (key === "j" || key === "k") pick([order[(Math.max(here, 0) + (key === "j" ? 1 : order.length - 1)) % order.length]].filter((p) => p !== undefined));
  else if (key === "a") pick(state.picked.length > 1 ? [state.picked[0]] : [...new Set([...state.picked, ...order])].slice(0, palette.length));
  else if (key === "x") { state.axis = state.axis === "time" ? "step" : "time"; state.range = null; loadData().then(show); }
  else if (key === "l") { state.log = !state.log; show(); }
  else if (key === "s") { state.smooth = state.smooth ? 0 : 0.9; show(); }
  else if (key === "0") { state.range = null; loadData().then(show); }
  else if (key === "/") (at("filter") ?? at("find")).focus();
  else if (key === "t") theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  else if (key === "?") at("keys").showModal();
  else return false;
  return true;
}

async function begin() {
  const wished = localStorage.getItem("theme");
  document.documentElement.dataset.theme = wished ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  at("keys").append(views.make("h2", "Keys"), ...keys.map(([key, words]) => {
    const row = views.make("div");
    row.append(views.make("kbd", key), ` ${words}`);
    return row;
  }));
  at("theme").addEventListener("click", () => press("t"));
  at("help").addEventListener("click", () => press("?"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.type === "search") return;
    if (press(event.key)) event.preventDefault();
  });
  list = new RunList(at("runs"), { pick, picked: () => state.picked });
  (await ask("/api/runs")).forEach(add);
  tellApart([...runs.values()]);
  const running = [...runs.values()].find((run) => run.state === "running") ?? [...runs.values()].sort((a, b) => b.newest - a.newest)[0];
  await pick(running ? [running.run] : []);
}

begin();
