// How numbers are written: alone, and along an axis.

/// A number as people read it.
export function shortNumber(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e12)) return value.toExponential(2).replace(/\.?0*e\+?/, "e");
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) { // 999,990 is rounded to 1 M
    if (+size.toPrecision(4) >= unit) return `${+(value / (letter === "k" ? 1e3 : unit)).toPrecision(4)} ${letter}`;
  }
  return String(+value.toPrecision(5));
}

export const count = (value) => shortNumber(value);
count.whole = true;

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds !== 0 && Math.abs(seconds) < 1e-3) return `${+(seconds * 1e6).toPrecision(3)} µs`;
  if (seconds !== 0 && Math.abs(seconds) < 0.1) return `${+(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 100) return `${+seconds.toPrecision(3)} s`;
  if (seconds < 6000) return `${+(seconds / 60).toPrecision(3)} min`;
  return `${+(seconds / 3600).toPrecision(3)} h`;
}
duration.units = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"], [86400, "days"]];

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const [size, unit] = value < 2 ** 20 ? [2 ** 10, "KiB"] : value < 2 ** 30 ? [2 ** 20, "MiB"] : [2 ** 30, "GiB"];
  return `${+(value / size).toPrecision(4)} ${unit}`;
}
bytes.units = [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]];

/// How long ago a moment was, in one word: "12 s", "3 h".
export function age(moment, now = Date.now() / 1000) {
  if (!moment) return "–";
  const past = Math.max(0, now - moment);
  const [unit, letter] = past < 100 ? [1, "s"] : past < 6000 ? [60, "min"] : past < 172800 ? [3600, "h"] : [86400, "d"];
  return `${Math.round(past / unit)} ${letter}`;
}

/// 1234567 as "1,234,567"; of a fraction, the part before the point.
export const separated = (text) => String(text).replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

function ticks(low, high, count) {
  const step = 10 ** Math.floor(Math.log10((high - low) / count || 1));
  const width = [1, 2, 5, 10].map((factor) => factor * step).find((w) => (high - low) / w <= count) ?? step * 10;
  const result = new Set();
  for (let i = Math.ceil(low / width - 1e-9), end = high / width + 1e-9; i <= end && result.size < 100; ++i) result.add(+(i * width).toPrecision(12));
  return [...result];
}

const powerOf = (value) => Math.floor(Math.log10(value) + 1e-9);

/// The numbers of one axis: with the digits that tell neighbours apart, and powers of ten where numbers would be long.
export function numbersText(values) {
  const most = Math.max(...values.map(Math.abs));
  if (!(most > 0)) return values.map(() => "0");
  const gaps = values.slice(1).map((value, i) => Math.abs(value - values[i])).filter((gap) => gap > 0);
  const finest = powerOf(gaps.length ? Math.min(...gaps) : most); // the power of ten of the last digit that counts
  const scientific = most < 1e-3 || most >= 1e12 || (most >= 1e7 && powerOf(most) - finest <= 3);
  return values.map((value) => {
    if (value === 0) return "0";
    if (!scientific) return separated(value.toFixed(Math.min(12, Math.max(0, -finest))));
    const digits = Math.min(15, Math.max(0, powerOf(Math.abs(value)) - finest));
    return value.toExponential(digits).replace(/\.?0*e/, "e").replace("e+", "e");
  });
}

/// The ticks of an axis from `low` to `high`, about `count` of them: where they stand, and their words. `written`: how
/// single values are written, which tells the units.
export function axis(low, high, count, written) {
  const [size, unit] = written?.units?.findLast(([each]) => each <= (high - low) / 2) ?? written?.units?.[0] ?? [1, ""];
  const values = ticks(low / size, high / size, count).filter((value) => !written?.whole || Number.isInteger(value));
  const words = numbersText(values);
  return values.map((value, i) => ({ at: value * size, text: unit ? `${words[i]} ${unit}` : words[i] }));
}

/// The same for a logarithmic axis, between powers of ten.
export function logAxis(low, high, count) {
  if (high - low < 0.7) return axis(10 ** low, 10 ** high, count);
  const factors = high - low < 2.5 ? [1, 2, 5] : [1], stride = Math.max(1, Math.ceil((high - low) / (count + 1)));
  const values = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    if (power % stride === 0) values.push(...factors.map((factor) => factor * 10 ** power));
  }
  return values.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high)
    .map((value) => ({ at: value, text: numbersText([value])[0] }));
}
