// What a model takes for what: the newest confusion matrix of a run, and the samples with the largest losses.
import { palette } from "/chart.js";
import { separated, shortNumber } from "/numbers.js";
import { make, panel, table } from "/views.js";

const max_classes = 20; // of a table with all counts

const newestMatrix = ({ details }) => details.events.findLast((each) => each.confusion?.classes?.length);

export const hasMistakes = (run) => Boolean(newestMatrix(run) || run.details.worst.length);

const percent = (part, all) => all ? `${(100 * part / all).toFixed(1)} %` : "–";
const sum = (values) => values.reduce((all, value) => all + value, 0);

/// A cell whose colour is as strong as its share of the true class.
function countCell(count, all, right, words) {
  const cell = make("td", count ? separated(count) : "·", "count"), share = all ? count / all : 0;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(palette[right ? 0 : 1].slice(at, at + 2), 16));
  cell.style.backgroundColor = `rgb(${red} ${green} ${blue} / ${count ? 0.12 + 0.78 * share : 0})`;
  if (share > 0.6) cell.style.color = "#fff";
  cell.title = words;
  return cell;
}

/// All counts, with how many of each true class were found, and how many of those taken for a class are of it.
function wholeTable({ classes, counts }) {
  const box = make("div", "", "scroll"), grid = make("table", "", "confusion"), head = make("tr");
  const heads = classes.map((name) => Object.assign(make("th", name, "predicted"), { title: `predicted: ${name}` }));
  head.append(make("th", "true ↓ pred. →"), ...heads, make("th", "samples"), make("th", "recall"));
  const rows = counts.map((row, i) => {
    const line = make("tr"), all = sum(row);
    line.append(Object.assign(make("th", classes[i], "true"), { title: `true: ${classes[i]}` }), ...row.map((count, j) => countCell(count, all, i === j,
      `true ${classes[i]}, predicted ${classes[j]}: ${separated(count)} of ${separated(all)} (${percent(count, all)})`)),
      make("td", separated(all), "number"), make("td", percent(row[i], all), "number"));
    return line;
  });
  const last = make("tr"), hits = sum(counts.map((row, i) => row[i])), all = sum(counts.flat());
  last.append(make("th", "precision", "true"), ...classes.map((_, j) => make("td", percent(counts[j][j], sum(counts.map((row) => row[j]))), "number")),
    make("td", separated(all), "number"), make("td", percent(hits, all), "number"));
  grid.append(head, ...rows, last);
  box.append(grid);
  return [box];
}

/// A picture of many classes with a pixel or more for each pair, and the pairs that are mistaken most often.
function picture({ classes, counts }) {
  const canvas = make("canvas", "", "heat"), told = make("p", "Point at the picture: a row for each true class, a column for each predicted one.", "facts");
  const size = classes.length, sums = counts.map(sum);
  canvas.width = canvas.height = size;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `confusion of ${size} classes`);
  const pen = canvas.getContext("2d"), image = pen.createImageData(size, size);
  counts.forEach((row, i) => row.forEach((count, j) => {
    const colour = palette[i === j ? 0 : 1], at = 4 * (i * size + j);
    for (const [k, from] of [1, 3, 5].entries()) image.data[at + k] = parseInt(colour.slice(from, from + 2), 16);
    image.data[at + 3] = count && sums[i] ? 40 + 215 * Math.sqrt(count / sums[i]) : 0;
  }));
  pen.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const [j, i] = [event.offsetX / canvas.clientWidth, event.offsetY / canvas.clientHeight].map((share) => Math.min(size - 1, Math.max(0, Math.floor(share * size))));
    told.textContent = `true ${classes[i]}, predicted ${classes[j]}: ${separated(counts[i][j])} of ${separated(sums[i])} (${percent(counts[i][j], sums[i])})`;
  });
  const pairs = counts.flatMap((row, i) => row.map((count, j) => [classes[i], classes[j], count, sums[i], i !== j]));
  const largest = pairs.filter((pair) => pair[4] && pair[2]).sort((a, b) => b[2] - a[2]).slice(0, 20);
  return [canvas, told, table(["true class", "predicted class", "samples", "of", "share"],
    largest.map(([truth, guess, count, all]) => [truth, guess, separated(count), separated(all), percent(count, all)]))];
}

function confusion(run) {
  const record = newestMatrix(run);
  if (!record) return [];
  const box = panel(`${run.name}: confusion`, `${record.event}, step ${separated(record.step)}`);
  box.append(...(record.confusion.classes.length <= max_classes ? wholeTable : picture)(record.confusion));
  return [box];
}

/// The list that `lockstep evaluate --worst N --worst-output RUN/worst` wrote.
function worst({ run, name, details }) {
  const samples = details.worst.filter((each) => each.event === "sample"), about = details.worst.find((each) => each.event === "worst");
  if (!samples.length) return [];
  const box = panel(`${name}: largest losses`, about ? `${samples.length} of ${separated(about.samples)} samples, ${about.set}` : "");
  const loss = (each) => each.loss === null ? "not finite" : shortNumber(each.loss);
  const place = (each) => `${each.file ?? ""}, ${separated(each.number_in_file ?? "–")}${each.source ? `: ${each.source}` : ""}`;
  if (!samples.some((each) => details.worst_pictures.includes(each.picture))) {
    box.append(table(["", "sample", "loss", "truth", "predicted", "file, sample in it: source"], samples.map((each, i) =>
      [`${i + 1}.`, separated(each.sample), loss(each), each.truth, each.prediction, place(each)])));
    return [box];
  }
  const tiles = make("div", "", "tiles samples");
  tiles.append(...samples.map((each, i) => {
    const tile = make("figure", "", "tile"), image = make("img"), words = make("figcaption");
    image.src = `/api/picture?run=${run}&picture=${details.worst_pictures.indexOf(each.picture)}&of=worst`;
    image.alt = `sample ${each.sample}`;
    image.loading = "lazy";
    words.append(make("strong", `${i + 1}. sample ${separated(each.sample)}`), make("div", `loss ${loss(each)}`));
    if (each.truth) words.append(make("div", `truth ${each.truth}`), make("div", `predicted ${each.prediction}`));
    if (each.source) words.append(make("div", each.source));
    tile.title = place(each);
    tile.append(image, words);
    return tile;
  }));
  box.append(tiles);
  return [box];
}

export function mistakes(state, element) {
  const update = (changed) => {
    if (changed === "rows") return;
    element.replaceChildren(...state.chosen().flatMap((run) => [...confusion(run), ...worst(run)]));
    if (element.firstChild) return;
    element.append(make("p", "This run has no confusion matrix (task.metrics = confusion), and no list of its largest losses " +
      "(lockstep evaluate DECK RUN --worst N --worst-output RUN/worst).", "empty"));
  };
  update();
  return update;
}
