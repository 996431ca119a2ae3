// The view of searches: best so far, Pareto front, parallel coordinates, trials.
import { Chart, palette } from "/chart.js";
import { ask } from "/data.js";
import { duration, shortNumber } from "/numbers.js";
import { make, panel, table } from "/views.js";

/// A search from the records of its journal: goals, keys that differ, trials with their newest results.
function understood(records) {
  const space = records.find((each) => each.event === "search")?.space ?? {};
  const goals = (space["search.goals"] ?? "loss min").split(",").map((each) => {
    const [name, way] = each.trim().split(/\s+/);
    return { name, more: way === "max" };
  });
  const trials = new Map();
  const results = [];
  for (const record of records) {
    if (record.event === "ask") {
      const known = trials.get(record.trial);
      trials.set(record.trial, { ...known, number: record.trial + 1, values: record.values ?? known?.values ?? {}, parent: record.parent, open: true });
    } else if (record.event === "result" && trials.has(record.trial)) {
      const trial = trials.get(record.trial);
      const goal = goals.map(({ name }) => record.code === 0 ? record.metrics?.[name] ?? null : null);
      Object.assign(trial, { open: false, code: record.code, message: record.message ?? "", share: record.share, seconds: record.seconds, step: record.step, goal });
      results.push({ trial, goal, share: record.share });
    }
  }
  const all = [...trials.values()];
  const keys = [...new Set(all.flatMap((each) => Object.keys(each.values)))]
    .filter((key) => new Set(all.map((each) => each.values[key])).size > 1);
  const axes = [...keys.map((key) => axisOf(key, (each) => each.values[key], all, /^log-/.test(space[`space.${key}`] ?? ""))),
    ...goals.map(({ name }, i) => axisOf(name, (each) => each.goal?.[i], all, false))];
  return { strategy: space["search.strategy"] ?? "random", goals, trials: all, results, keys, axes, fronts: ranked(all, goals) };
}

/// Where a trial stands on an axis, 0 to 1; null where it has no value there.
function axisOf(name, value, trials, log) {
  const told = [...new Set(trials.map(value).filter((each) => each !== undefined && each !== null))];
  const numeric = told.every((each) => each !== "" && Number.isFinite(Number(each)));
  const size = (each) => log ? Math.log(Number(each)) : Number(each);
  if (numeric) {
    const low = Math.min(...told.map(size)), high = Math.max(...told.map(size));
    const ends = told.length ? [log ? Math.exp(low) : low, log ? Math.exp(high) : high] : [];
    return { name, labels: told.length ? [[0, shortNumber(ends[0])], [1, shortNumber(ends[1])]] : [],
      at: (trial) => {
        const own = value(trial);
        return own === undefined || own === null ? null : high > low ? (size(own) - low) / (high - low) : 0.5;
      } };
  }
  told.sort();
  const place = (each) => told.length > 1 ? told.indexOf(each) / (told.length - 1) : 0.5;
  return { name, labels: told.map((each) => [place(each), String(each)]), at: (trial) => told.includes(value(trial)) ? place(value(trial)) : null };
}

const isBetter = (a, b, goals) => {
  const steps = goals.map(({ more }, i) => more ? a[i] - b[i] : b[i] - a[i]);
  return steps.every((each) => each >= 0) && steps.some((each) => each > 0);
};

/// Trials by fronts, the best first; among those that have come farthest.
function ranked(trials, goals) {
  const done = trials.filter((each) => each.goal && each.goal.every((value) => Number.isFinite(value)));
  const farthest = Math.max(0, ...done.map((each) => each.share));
  let left = done.filter((each) => each.share === farthest);
  if (goals.length === 1) {
    left.sort((a, b) => goals[0].more ? b.goal[0] - a.goal[0] : a.goal[0] - b.goal[0]);
    return left.map((each) => [each]);
  }
  const fronts = [];
  while (left.length) {
    const front = left.filter((each) => !left.some((other) => isBetter(other.goal, each.goal, goals)));
    front.sort((a, b) => a.goal[0] - b.goal[0]);
    fronts.push(front);
    left = left.filter((each) => !front.includes(each));
  }
  return fronts;
}

function bestSoFar({ goals, results }, i) {
  const told = results.map(({ goal }, at) => ({ x: at + 1, value: goal[i] })).filter(({ value }) => Number.isFinite(value));
  let best = null;
  const line = told.map(({ value }) => best = best === null || (goals[i].more ? value > best : value < best) ? value : best);
  const x = told.map((each) => each.x);
  return [{ label: "a trial", colour: palette[7], x, mean: told.map((each) => each.value), points: true },
    { label: "best so far", colour: palette[0], x, mean: line, steps: true }];
}

function front({ goals, trials, fronts }) {
  const points = (some) => [...some].sort((a, b) => a.goal[0] - b.goal[0]);
  const curve = (label, some, more) => ({ label, x: points(some).map((each) => each.goal[0]), mean: points(some).map((each) => each.goal[1]), ...more });
  const done = trials.filter((each) => each.goal?.every((value) => Number.isFinite(value)));
  return [curve(`all: ${goals[1].name}`, done, { colour: palette[7], points: true }), curve("front", fronts[0] ?? [], { colour: palette[1], dots: true })];
}

/// A line per trial across all keys and goals; the best are drawn last.
function drawParallel(canvas, search, marked) {
  const { axes, fronts, goals } = search;
  const wide = Math.max(canvas.parentElement.clientWidth, axes.length * 96), tall = 300, ratio = window.devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = tall * ratio;
  canvas.style.width = `${wide}px`;
  canvas.style.height = `${tall}px`;
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  const left = 48, right = 48, top = 34, high = tall - 78;
  const xOf = (i) => axes.length > 1 ? left + i * (wide - left - right) / (axes.length - 1) : wide / 2;
  const yOf = (share) => share === null ? top + high + 22 : top + (1 - share) * high;
  const line = (trial, colour, strength, width) => {
    pen.strokeStyle = colour;
    pen.globalAlpha = strength;
    pen.lineWidth = width;
    pen.beginPath();
    axes.forEach((axis, i) => pen.lineTo(xOf(i), yOf(axis.at(trial))));
    pen.stroke();
  };
  const order = fronts.flat(), faint = style.getPropertyValue("--faint"), best = goals.length > 1 ? fronts[0] ?? [] : order.slice(0, Math.max(1, Math.round(order.length / 10)));
  for (const trial of order) if (!best.includes(trial)) line(trial, faint, 0.3, 1);
  for (const trial of best.toReversed()) line(trial, palette[1], 0.85, 1.6);
  const own = search.trials.find((each) => each.number === marked);
  if (own) line(own, palette[0], 1, 3);
  pen.globalAlpha = 1;
  axes.forEach((axis, i) => {
    const x = xOf(i);
    pen.strokeStyle = faint;
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(x, top); pen.lineTo(x, top + high); pen.stroke();
    pen.textAlign = "center";
    pen.fillStyle = style.getPropertyValue("--ink");
    const [section, key = section] = axis.name.split(".");
    pen.fillText(key, x, top - 20, 92);
    pen.fillStyle = faint;
    for (const [share, words] of axis.labels) {
      const y = yOf(share), width = Math.min(pen.measureText(words).width, 90);
      pen.fillStyle = style.getPropertyValue("--panel");
      pen.globalAlpha = 0.75;
      pen.fillRect(x - width / 2 - 2, y - (share === 1 ? 16 : -4), width + 4, 13);
      pen.globalAlpha = 1;
      pen.fillStyle = faint;
      pen.fillText(words, x, share === 1 ? y - 6 : y + 14, 90);
    }
  });
  if (search.trials.some((trial) => axes.some((axis) => axis.at(trial) === null))) {
    pen.textAlign = "left";
    pen.fillText("not used, or failed", 4, top + high + 40);
  }
}

const outcome = (trial) => trial.open ? "running" : trial.code === 0 ? "done" : `exit ${trial.code}`;
const shown = (value) => value === null || value === undefined ? "–" : shortNumber(Number(value));

function trialTable(search, state, path, mark) {
  const { goals, keys, fronts, trials } = search, order = fronts.flat();
  const rest = trials.filter((each) => !order.includes(each)).sort((a, b) => b.number - a.number);
  const listed = [...order, ...rest].slice(0, 200);
  const box = table(["trial", ...goals.map((each) => each.name), "", ...keys, "trained", "time"],
    listed.map((trial) => [String(trial.number), ...goals.map((_, i) => shown(trial.goal?.[i])), outcome(trial),
      ...keys.map((key) => trial.values[key] ?? "–"), trial.share === undefined ? "–" : `${shortNumber(100 * trial.share)} %`, duration(trial.seconds)]));
  box.querySelectorAll("tr").forEach((row, i) => {
    const trial = listed[i - 1];
    if (!trial) return;
    if (fronts[0]?.includes(trial)) row.className = "differs";
    if (trial.message) row.title = trial.message;
    row.addEventListener("pointerenter", () => mark(trial.number));
    row.addEventListener("pointerleave", () => mark(null));
    const run = state.runAt(`${path}/trials/${String(trial.number).padStart(4, "0")}`);
    if (run !== undefined) {
      const link = make("button", String(trial.number), "link");
      link.title = "show the curves of this trial";
      link.addEventListener("click", () => state.open(run));
      row.firstChild.replaceChildren(link);
    }
  });
  return box;
}

export function searches(state, element) {
  const boxes = new Map();
  const load = async (told) => {
    const search = understood(await ask("/api/search", { search: told.search }));
    const { goals, trials, strategy } = search, done = trials.filter((each) => !each.open).length;
    let box = boxes.get(told.search);
    if (!box) {
      box = { frame: make("div"), charts: goals.map(({ name }) => new Chart({ title: `${name}, best so far` })), canvas: make("canvas") };
      if (goals.length > 1) box.front = new Chart({ title: "Pareto front", x: shortNumber, height: 260 });
      box.canvas.setAttribute("role", "img");
      box.canvas.setAttribute("aria-label", "parallel coordinates of all trials");
      const grid = make("div", "", "grid small"), lines = make("div", "", "scroll");
      box.charts.forEach((chart, i) => {
        const part = panel(goals[i].name, `${goals[i].more ? "max" : "min"}, by finished trial`);
        part.append(chart.element);
        grid.append(part);
      });
      if (box.front) {
        const part = panel("Pareto front", `${goals[1].name} over ${goals[0].name}`);
        part.append(box.front.element);
        grid.append(part);
      }
      const coordinates = panel("Parallel coordinates", goals.length > 1 ? "the front in colour" : "the best tenth in colour");
      lines.append(box.canvas);
      coordinates.append(lines);
      box.head = panel(told.name);
      box.facts = make("p", "", "facts");
      box.head.append(box.facts);
      box.list = panel("Trials", "best first");
      box.frame.append(box.head, grid, coordinates, box.list);
      element.append(box.frame);
      boxes.set(told.search, box);
      new ResizeObserver(() => box.draw?.()).observe(lines);
    }
    box.facts.textContent = `${strategy}: ${done} of ${trials.length} trials have a result, ${trials.filter((each) => each.code).length} failed; ` +
      `goals ${goals.map(({ name, more }) => `${name} ${more ? "max" : "min"}`).join(", ")}`;
    box.charts.forEach((chart, i) => chart.show(bestSoFar(search, i)));
    box.front?.show(front(search));
    box.draw = (marked = null) => drawParallel(box.canvas, search, marked);
    box.draw();
    box.list.querySelector(".scroll")?.remove();
    box.list.append(trialTable(search, state, told.path, box.draw));
  };
  const update = async (changed) => {
    if (changed && changed !== "searches") return;
    const all = await ask("/api/searches");
    if (!all.length && !element.firstChild) element.append(make("p", "There are no searches here: the directory of a search holds search.jsonl.", "empty"));
    if (all.length) element.querySelector(".empty")?.remove();
    await Promise.all(all.map(load));
  };
  update();
  return update;
}
