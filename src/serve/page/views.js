// What each view shows of the chosen runs. A view gets the page's state and an element to fill; it returns a function
// that brings it up to date, if there is more to it than drawing it again.
import { Chart, palette } from "/chart.js";
import { ask, deckKeys } from "/data.js";
import { bytes, count, duration, separated, shortNumber } from "/numbers.js";

export function make(kind, words = "", className = "") {
  const element = document.createElement(kind);
  element.textContent = words;
  element.className = className;
  return element;
}

export function panel(title, small = "") {
  const box = make("section", "", "panel"), head = make("h2", title);
  if (small) head.append(" ", make("small", small));
  box.append(head);
  return box;
}

export function table(heads, rows, classOf = () => "") {
  const box = make("div", "", "scroll"), grid = make("table"), first = make("tr");
  first.append(...heads.map((head) => make("th", head)));
  grid.append(first, ...rows.map((cells) => {
    const row = make("tr", "", classOf(cells));
    row.append(...cells.map((cell) => make("td", cell, typeof cell === "number" ? "number" : "")));
    return row;
  }));
  box.append(grid);
  return box;
}

const clock = (seconds) => new Date(seconds * 1000).toLocaleString(undefined, { hour12: false });
const seconds = (record) => Date.parse(record.time) / 1000;
const known = ["event", "time", "elapsed_s", "step", "epoch", "loss", "samples", "seconds", "samples_per_s", "best"];

/// The measured values of records, by name, without those of single classes.
function metricNames(chosen) {
  const names = new Set();
  for (const { details } of chosen) {
    for (const record of details.events.filter((each) => each.event === "validation" || each.event === "test")) {
      for (const [name, value] of Object.entries(record)) {
        if (typeof value === "number" && !known.includes(name) && !name.includes(".")) names.add(name);
      }
    }
  }
  return [...names].sort();
}

function measured(run, kind, name, state) {
  const records = run.details.events.filter((each) => each.event === kind && Number.isFinite(each[name]));
  const start = run.start ?? 0;
  return {
    x: records.map((each) => state.axis === "time" ? seconds(each) - start : each.step),
    mean: records.map((each) => each[name]),
  };
}

const within = (state, { x, mean }) => {
  const keep = x.map((value) => !state.range || (value >= state.range[0] && value <= state.range[1]));
  return { x: x.filter((_, i) => keep[i]), mean: mean.filter((_, i) => keep[i]) };
};

const curveTitles = {
  loss: "loss", learning_rate: "learning rate", samples_per_s: "samples per second", grad_norm: "gradient norm",
  step_ms: "step time (ms)", memory_bytes: "memory of rank 0", device_memory_bytes: "device memory",
  device_utilization: "device use (%)", loss_scale: "loss scale", straggler_ms: "straggler's delay (ms)",
};
const parts = {
  forward_ms: "forward", backward_ms: "backward", communication_ms: "communication",
  imbalance_ms: "waiting for slower ranks", data_ms: "data", update_ms: "update",
};
const timeAxis = (state) => state.axis === "time" ? duration : count;
const whereOf = (state) => (x) => state.axis === "time" ? `after ${duration(x)}` : `step ${separated(Math.round(x))}`;

/// A colour for another curve of the only run that is shown.
const otherThan = (colour, i) => palette.filter((each) => each !== colour)[i];

export function stepColumns(run) {
  const others = run.details.columns.filter((name) => !(name in curveTitles) && !(name in parts) && !known.includes(name));
  return { curves: Object.keys(curveTitles).filter((name) => run.details.columns.includes(name)), others };
}

export function curves(state, element) {
  const grid = make("div", "", "grid"), charts = new Map();
  element.append(grid);
  const chartFor = (title, unit) => {
    if (!charts.has(title)) {
      const box = panel(title), chart = new Chart({ title, x: timeAxis(state), y: unit, where: whereOf(state), onZoom: state.zoom });
      box.append(chart.element);
      grid.append(box);
      charts.set(title, chart);
    }
    return charts.get(title);
  };
  const update = () => {
    const chosen = state.chosen();
    const columns = [...new Set(chosen.flatMap((run) => stepColumns(run).curves))];
    for (const name of ["loss", ...columns.filter((each) => each !== "loss")]) {
      const series = chosen.flatMap((run) => {
        const curve = run.data?.curves[name], many = chosen.length > 1;
        const lines = curve ? [{ label: run.name, colour: run.colour, x: run.data.x, ...curve }] : [];
        if (name !== "loss") return lines;
        const colour = many ? run.colour : otherThan(run.colour, 0);
        const validation = { ...within(state, measured(run, "validation", "loss", state)), label: run.name, kind: "validation", colour, dots: true, dashed: true };
        return validation.x.length ? [...lines, validation] : lines;
      });
      const unit = name.endsWith("_bytes") ? bytes : shortNumber;
      chartFor(curveTitles[name] ?? name, unit).show(series, { log: state.log && name === "loss", smooth: state.smooth });
    }
    for (const name of metricNames(chosen)) {
      const series = chosen.flatMap((run) => ["epoch", "validation", "test"].map((kind, i) => ({
        ...within(state, measured(run, kind, name, state)), dots: true,
        label: run.name, kind: kind === "epoch" ? "while training" : kind,
        colour: chosen.length > 1 || i === 0 ? run.colour : otherThan(run.colour, i - 1),
      }))).filter((each) => each.x.length);
      if (series.length) chartFor(name, shortNumber).show(series);
    }
  };
  update();
  return update;
}

export function time(state, element) {
  const charts = new Map();
  const update = () => {
    for (const run of state.chosen()) {
      if (!charts.has(run.run)) {
        const box = panel(run.name, "milliseconds of a step"), rows = make("div");
        const chart = new Chart({ title: "step time by part", height: 300, x: timeAxis(state), where: whereOf(state), onZoom: state.zoom });
        box.append(chart.element, rows);
        element.append(box);
        charts.set(run.run, { chart, rows });
      }
      const { chart, rows } = charts.get(run.run);
      const series = Object.entries(parts).filter(([name]) => run.data?.curves[name])
        .map(([name, label], i) => ({ label, colour: palette[i], x: run.data.x, mean: run.data.curves[name].mean }));
      chart.show(series, { stacked: true, smooth: state.smooth });
      const means = series.map((each) => each.mean.reduce((sum, value) => sum + (value ?? 0), 0) / (each.mean.length || 1));
      const sum = means.reduce((a, b) => a + b, 0) || 1;
      rows.replaceChildren(table(["part", "mean (ms)", "share"],
        series.map((each, i) => [each.label, shortNumber(means[i]), `${(100 * means[i] / sum).toFixed(1)} %`])));
    }
  };
  update();
  return update;
}

export function ranks(state, element) {
  const update = () => {
    element.replaceChildren();
    for (const { name, details } of state.chosen()) {
      const start = details.events.findLast((each) => each.event === "start"), step = details.newest_step ?? {};
      const used = usedByRank(details.events);
      const box = panel(name, start ? `${start.ranks} rank${start.ranks === 1 ? "" : "s"}, step ${step.step ?? "–"}` : "");
      const tiles = make("div", "", "tiles");
      for (let rank = 0; rank < Math.min(start?.ranks ?? 0, 4096); ++rank) tiles.append(rankTile(rank, start, step, used.get(rank)));
      if (!tiles.children.length) tiles.append(make("p", "The run has not begun.", "empty"));
      box.append(tiles);
      element.append(box);
    }
  };
  update();
  return update;
}

/// What each rank has used in the newest attempt, as its newest epoch or its end tells, by rank; records have it where
/// ranks are few.
function usedByRank(events) {
  const newest = events.findLast((each) => each.event === "start" || each.resources?.ranks);
  return new Map((newest?.resources?.ranks ?? []).map((each) => [each.rank, each]));
}

function rankTile(rank, start, step, used) {
  const late = step.straggler === rank, tile = make("div", "", late ? "tile late" : "tile");
  const lines = [`${start.hosts?.[rank] ?? ""} · ${start.devices?.[rank] ?? ""}`,
    `replicas: ${start.replicas_of_rank?.[rank] ?? "–"}`];
  if (late) lines.push(`late by ${shortNumber(step.straggler_ms)} ms: the others wait`);
  if (rank === 0) { // records of steps hold rank 0's own values
    lines.push(`memory: ${bytes(step.memory_bytes)}`);
    if ("device_memory_bytes" in step) lines.push(`device memory: ${bytes(step.device_memory_bytes)}`);
    if ("device_utilization" in step) lines.push(`device use: ${shortNumber(step.device_utilization)} %`);
  }
  if (used) lines.push(`memory, at most: ${bytes(used.memory_peak_bytes)}`);
  if (used && "device_utilization" in used) lines.push(`device use, mean: ${shortNumber(used.device_utilization)} %`);
  if (used && "device_joules" in used) lines.push(`energy of the device: ${(used.device_joules / 3.6e6).toFixed(4)} kWh`);
  for (const [name, values] of Object.entries(step)) { // whatever else is told by rank
    if (Array.isArray(values) && values.length === start.ranks && typeof values[rank] === "number") {
      lines.push(`${name.replaceAll("_", " ")}: ${name.endsWith("_bytes") ? bytes(values[rank]) : shortNumber(values[rank])}`);
    }
  }
  tile.append(make("strong", `rank ${rank}`), ...lines.map((line) => make("div", line)));
  return tile;
}

export function history(state, element) {
  const update = () => {
    element.replaceChildren();
    for (const { name, details, carbon_intensity: carbon } of state.chosen()) {
      const starts = details.events.filter((each) => each.event === "start");
      const saved = details.events.filter((each) => each.event === "checkpoint");
      const ends = details.events.filter((each) => each.event === "end" || each.event === "failure");
      const box = panel(name, `${starts.length} attempt${starts.length === 1 ? "" : "s"}, ${saved.length} checkpoint${saved.length === 1 ? "" : "s"}`);
      const origin = starts.length ? seconds(starts[0]) : 0;
      const chart = new Chart({ title: "checkpoints and attempts", height: 220, x: duration });
      box.append(chart.element,
        make("p", "Steps done, by time. Dashed: an attempt begins (blue), an attempt ends (grey) or fails (red).", "facts"));
      element.append(box);
      const style = getComputedStyle(document.documentElement);
      chart.show([{ label: "checkpoint at step", colour: palette[2], dots: true, x: saved.map((each) => seconds(each) - origin),
        mean: saved.map((each) => each.step) }], {
        marks: [...starts.map((each) => ({ x: seconds(each) - origin, colour: style.getPropertyValue("--accent") })),
          ...ends.map((each) => ({ x: seconds(each) - origin,
            colour: style.getPropertyValue(each.event === "failure" ? "--bad" : "--faint") }))],
      });
      box.append(make("h2", "Attempts"), table(["attempt", "begun", "ranks", "steps", "productive", "lost", "checkpoints",
        "effective so far", "end"],
        details.history.map((each) => [String(each.attempt ?? ""), each.start ? clock(Date.parse(each.start) / 1000) : "–",
          String(each.ranks ?? "–"), `${each.first_step ?? "–"} – ${each.last_step ?? ""}`, duration(each.productive_s),
          duration(each.lost_s), duration(each.checkpoint_s), each.effective == null ? "–" : `${(100 * each.effective).toFixed(1)} %`, each.reason ?? "running"])));
      const used = resources(details.events, carbon);
      if (used) box.append(make("h2", "Used by all attempts"), table(used.map(([head]) => head), [used.map(([, words]) => words)]));
      box.append(make("h2", "Newest checkpoints"), table(["step", "file", "size", "written in", "training paused"],
        saved.slice(-20).reverse().map((each) => [String(each.step), (each.file ?? "").split("/").at(-1), bytes(each.bytes), duration(each.seconds),
          duration(each.stall_s)])));
    }
  };
  update();
  return update;
}

/// What the attempts used together, with the words for each: an attempt's end tells it all, its epochs what was used by then.
/// `carbon`: grams of CO2 per kWh, where `serve` was told.
function resources(events, carbon) {
  const attempts = [];
  for (const { event, resources: used } of events) {
    if (event === "start") attempts.push({});
    if (!used || !attempts.length) continue;
    const last = attempts[attempts.length - 1];
    for (const [name, value] of Object.entries(used).filter(([, value]) => typeof value === "number")) {
      last[name] = event === "end" ? value : (last[name] ?? 0) + value;
    }
  }
  const sum = (name) => attempts.some((each) => name in each) ? attempts.reduce((all, each) => all + (each[name] ?? 0), 0) : NaN;
  if (!attempts.some((each) => "user_s" in each)) return null;
  const joules = [sum("processor_joules"), sum("device_joules")].filter(Number.isFinite);
  const kwh = joules.length ? joules.reduce((a, b) => a + b) / 3.6e6 : NaN;
  const energy = (value, digits, unit) => Number.isFinite(value) ? `${value.toFixed(digits)} ${unit}` : "not measured";
  return [["processor time", duration(sum("user_s") + sum("system_s"))],
    ["core-hours", ((sum("user_s") + sum("system_s")) / 3600).toFixed(3)],
    ["read from disk", bytes(sum("disk_read_bytes"))], ["written to disk", bytes(sum("disk_written_bytes"))],
    ["exchanged by ranks", bytes(sum("exchanged_bytes"))], ["network of hosts", bytes(sum("network_bytes"))],
    ["energy", energy(kwh, 4, "kWh")],
    ...(carbon === undefined ? [] : [[`CO2 at ${carbon.toFixed(0)} g/kWh`, energy(kwh * carbon, 2, "g")]])];
}

export function log(state, element) {
  const boxes = new Map();
  const load = async (run, box) => {
    const follows = box.text.scrollHeight - box.text.scrollTop - box.text.clientHeight < 40;
    const part = await ask("/api/log", { run: run.run });
    box.first = part.first;
    box.lines = part.text.split("\n");
    fill(box);
    if (follows) box.text.scrollTop = box.text.scrollHeight;
  };
  const fill = (box) => {
    const words = state.filter.toLowerCase();
    box.earlier.hidden = box.first === 0;
    box.text.replaceChildren(...box.lines.filter((line) => line.toLowerCase().includes(words)).map((line) => {
      const kind = line.includes("root cause:") ? "cause" : /\b(warning|error|failed)\b/i.test(line) ? "warning" : "";
      return make("span", line + "\n", kind);
    }));
  };
  const update = (changed) => {
    for (const run of state.chosen()) {
      let box = boxes.get(run.run);
      if (!box) {
        box = { frame: panel(run.name, "log.txt"), text: make("pre"), earlier: make("button", "earlier lines"), lines: [], first: 0 };
        box.text.tabIndex = 0;
        box.earlier.addEventListener("click", async () => {
          const part = await ask("/api/log", { run: run.run, end: box.first });
          box.lines = [...part.text.split("\n").slice(0, -1), ...box.lines];
          box.first = part.first;
          fill(box);
        });
        box.frame.append(box.earlier, box.text);
        element.append(box.frame);
        boxes.set(run.run, box);
        load(run, box);
      } else if (changed === "log") load(run, box);
      else if (changed === "filter") fill(box);
    }
  };
  update();
  return update;
}

export function deck(state, element) {
  const decks = new Map();
  const draw = () => {
    const chosen = state.chosen(), keys = [...new Set([...decks.values()].flatMap((each) => [...each.keys()]))];
    const words = state.filter.toLowerCase();
    const rows = keys.map((key) => [key, ...chosen.map((run) => decks.get(run.run)?.get(key) ?? "")])
      .filter((cells) => cells.join(" ").toLowerCase().includes(words));
    const differs = (cells) => new Set(cells.slice(1)).size > 1 ? "differs" : "";
    const box = panel(chosen.length > 1 ? "Decks, with their differences" : "Deck");
    box.append(table(["key", ...chosen.map((run) => run.name)],
      [...rows.filter(differs), ...rows.filter((cells) => !differs(cells))], differs));
    element.replaceChildren(box);
  };
  const update = async (changed) => {
    if (changed && changed !== "filter") return;
    for (const run of state.chosen()) {
      if (!decks.has(run.run)) decks.set(run.run, deckKeys(await ask("/api/deck", { run: run.run })));
    }
    draw();
  };
  update();
  return update;
}

export function pictures(state, element) {
  for (const { run, name, details } of state.chosen()) {
    gallery(element, panel(name, "plots"), run, "plots", details.pictures, "This run has no plots: they are drawn when it has finished.");
    if (details.samples.length) gallery(element, panel(name, "samples of the first batch, as the model gets them"), run, "samples", details.samples);
  }
}

function gallery(element, box, run, of, names, empty = "") {
  const grid = make("div", "", of === "samples" ? "tiles samples" : "grid");
  names.forEach((name, i) => {
    const figure = make("figure"), image = make("img");
    image.src = `/api/picture?run=${run}&picture=${i}&of=${of}`;
    image.alt = name;
    image.loading = "lazy";
    figure.append(image, make("figcaption", name));
    grid.append(figure);
  });
  if (!names.length) grid.append(make("p", empty, "empty"));
  box.append(grid);
  element.append(box);
}
