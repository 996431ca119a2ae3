// Lines, bands between least and largest values, and stacked areas on a canvas. Zoom: drag; back: double click.
import { axis, logAxis, shortNumber } from "/numbers.js";

/// As many colours as can be told apart: so many runs are overlaid at once.
export const palette = ["#1f77d0", "#d9571c", "#2a9d57", "#9a5bd0", "#c43a6b", "#0f8f99", "#a57a08", "#7a8390"];

function smoothed(values, share) {
  if (!share) return values;
  let sum = null;
  return values.map((value) => {
    if (value === null) return null;
    sum = sum === null ? value : share * sum + (1 - share) * value;
    return sum;
  });
}

export class Chart {
  /// options: height, x (how its numbers are written), y, where (what the legend tells of an x), onZoom(from, to) or
  /// (null, null)
  constructor(options) {
    this.options = { height: 210, x: shortNumber, y: shortNumber, onZoom: () => {}, ...options };
    this.element = document.createElement("div");
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", options.title ?? "chart");
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    this.element.append(this.legend, this.canvas);
    this.series = [];
    this.marks = [];
    this.watch();
  }

  /// series: {label, kind: of several with one label, colour, x, mean, min, max, dots, points: no line, steps: level until
  /// the next}; marks: {x, colour}
  show(series, { stacked = false, log = false, smooth = 0, marks = [] } = {}) {
    this.series = series.map((each) => ({ ...each, line: smoothed(each.mean, smooth) }));
    this.marks = marks;
    this.stacked = stacked;
    this.log = log;
    if (stacked) this.stack();
    this.draw();
  }

  stack() {
    let below = [];
    for (const each of this.series) {
      each.below = each.line.map((_, i) => below[i] ?? 0);
      each.line = each.line.map((value, i) => (value ?? 0) + each.below[i]);
      below = each.line;
    }
  }

  watch() {
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.canvas.addEventListener("pointerdown", (event) => { this.dragged = event.offsetX; });
    this.canvas.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.pointer = this.dragged = undefined; this.draw(); });
    this.canvas.addEventListener("pointerup", (event) => {
      const from = this.dragged;
      this.dragged = undefined;
      if (from !== undefined && Math.abs(event.offsetX - from) > 8) {
        const ends = [this.valueAt(from), this.valueAt(event.offsetX)].sort((a, b) => a - b);
        this.options.onZoom(...ends);
      }
    });
    this.canvas.addEventListener("dblclick", () => this.options.onZoom(null, null));
  }

  limits() {
    const wide = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
    const take = (pair, value) => {
      if (value === null || !Number.isFinite(value) || (this.log && pair === wide.y && value <= 0)) return;
      pair[0] = Math.min(pair[0], value);
      pair[1] = Math.max(pair[1], value);
    };
    for (const each of this.series) {
      for (const value of each.x) take(wide.x, value);
      for (const value of each.line) take(wide.y, value);
      if (this.stacked) take(wide.y, 0);
      else for (const value of [...(each.min ?? []), ...(each.max ?? [])]) take(wide.y, value);
    }
    for (const mark of this.marks) take(wide.x, mark.x);
    if (wide.x[0] === wide.x[1]) { wide.x[0] -= 1; wide.x[1] += 1; }
    if (this.log) wide.y = wide.y.map(Math.log10);
    const room = (wide.y[1] - wide.y[0]) * 0.05 || Math.abs(wide.y[1]) * 0.1 || 1;
    if (!this.stacked) wide.y[0] -= room;
    wide.y[1] += room;
    return wide;
  }

  valueAt(pixel) { return this.x0 + (pixel - this.left) / this.width * (this.x1 - this.x0); }
  atX(value) { return this.left + (value - this.x0) / (this.x1 - this.x0) * this.width; }
  atY(value) {
    const y = this.log ? Math.log10(value) : value;
    return this.top + (this.y1 - y) / (this.y1 - this.y0) * this.height;
  }

  draw() {
    const outer = this.element.clientWidth;
    if (!outer) return;
    const ratio = window.devicePixelRatio || 1, tall = this.options.height;
    this.canvas.width = outer * ratio;
    this.canvas.height = tall * ratio;
    this.canvas.style.height = `${tall}px`;
    const pen = this.pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const colours = getComputedStyle(document.documentElement);
    this.ink = colours.getPropertyValue("--faint");
    this.rule = colours.getPropertyValue("--line");
    pen.font = "11px system-ui, sans-serif";
    const { x, y } = this.limits();
    if (!Number.isFinite(x[0]) || !Number.isFinite(y[0])) {
      pen.fillStyle = this.ink;
      pen.textAlign = "center";
      pen.fillText("nothing has been recorded yet", outer / 2, tall / 2);
      this.legend.replaceChildren();
      return;
    }
    [this.x0, this.x1] = x;
    [this.y0, this.y1] = y;
    this.canvas.setAttribute("aria-label", `${this.options.title ?? "chart"}, ${this.options.x(x[0])} to ${this.options.x(x[1])}`);
    this.top = 8; this.height = tall - 32;
    this.axes(outer);
    for (const mark of this.marks) this.upright(mark.x, mark.colour, [3, 3]);
    this.series.forEach((each) => this.stacked ? this.area(each) : this.curve(each));
    this.tell();
  }

  axes(outer) {
    const pen = this.pen, wide = (tick) => pen.measureText(tick.text).width;
    pen.strokeStyle = this.rule;
    pen.fillStyle = this.ink;
    pen.textAlign = "right";
    const upward = this.log ? logAxis(this.y0, this.y1, 5) : axis(this.y0, this.y1, 5, this.options.y);
    this.left = Math.max(30, ...upward.map(wide)) + 12;
    this.width = Math.max(outer - this.left - 14, 10);
    for (const tick of upward) {
      const at = this.atY(tick.at);
      pen.beginPath(); pen.moveTo(this.left, at); pen.lineTo(this.left + this.width, at); pen.stroke();
      pen.fillText(tick.text, this.left - 6, at + 4);
    }
    let count = Math.max(4, Math.floor(this.width / 70)), along;
    do along = axis(this.x0, this.x1, count, this.options.x);
    while (--count > 0 && Math.max(0, ...along.map(wide)) + 14 > this.width / (along.length || 1));
    pen.textAlign = "center";
    for (const tick of along) {
      const half = wide(tick) / 2; // the first and the last one stay within the picture
      pen.fillText(tick.text, Math.min(Math.max(this.atX(tick.at), half), outer - half), this.top + this.height + 16);
    }
  }

  upright(x, colour, dash) {
    if (x < this.x0 || x > this.x1) return;
    const pen = this.pen;
    pen.save();
    pen.strokeStyle = colour;
    pen.setLineDash(dash);
    pen.beginPath(); pen.moveTo(this.atX(x), this.top); pen.lineTo(this.atX(x), this.top + this.height); pen.stroke();
    pen.restore();
  }

  band(x, upper, lower, colour, strength) {
    const pen = this.pen;
    pen.save();
    pen.globalAlpha = strength;
    pen.fillStyle = colour;
    pen.beginPath();
    const rows = x.map((_, i) => i).filter((i) => this.drawable(upper[i]) && this.drawable(lower[i]));
    for (const i of rows) pen.lineTo(this.atX(x[i]), this.atY(upper[i]));
    for (const i of rows.reverse()) pen.lineTo(this.atX(x[i]), this.atY(lower[i]));
    pen.fill();
    pen.restore();
  }

  drawable(value) { return value !== null && value !== undefined && (!this.log || value > 0); }
  area(each) { this.band(each.x, each.line, each.below, each.colour, 0.85); }

  curve(each) {
    const pen = this.pen;
    if (each.min?.length) this.band(each.x, each.max, each.min, each.colour, 0.18);
    pen.strokeStyle = pen.fillStyle = each.colour;
    pen.lineWidth = 1.6;
    pen.beginPath();
    let drawing = false, level = 0;
    if (!each.points) each.x.forEach((x, i) => {
      const value = each.line[i];
      if (!this.drawable(value)) { drawing = false; return; }
      if (drawing && each.steps) pen.lineTo(this.atX(x), this.atY(level));
      drawing ? pen.lineTo(this.atX(x), this.atY(value)) : pen.moveTo(this.atX(x), this.atY(value));
      drawing = true;
      level = value;
    });
    pen.setLineDash(each.dashed ? [5, 4] : []);
    pen.stroke();
    pen.setLineDash([]);
    pen.lineWidth = 1;
    if (each.dots || each.points || each.x.length === 1) {
      each.x.forEach((x, i) => {
        if (!this.drawable(each.line[i])) return;
        pen.beginPath(); pen.arc(this.atX(x), this.atY(each.line[i]), 2.5, 0, 7); pen.fill();
      });
    }
  }

  /// The legend: the values at the pointer, else the last ones.
  tell() {
    const at = this.pointer === undefined ? Infinity : this.valueAt(this.pointer);
    if (this.pointer !== undefined) this.upright(at, this.ink, []);
    if (this.dragged !== undefined && this.pointer !== undefined) {
      this.pen.globalAlpha = 0.15;
      this.pen.fillRect(this.dragged, this.top, this.pointer - this.dragged, this.height);
      this.pen.globalAlpha = 1;
    }
    const entries = [];
    this.series.forEach((each, place) => {
      let i = each.x.findIndex((x) => x > at);
      i = i < 0 ? each.x.length - 1 : Math.max(i - 1, 0);
      const before = this.series[place - 1], value = document.createElement("b");
      value.textContent = ` ${this.options.y(this.stacked ? each.mean[i] : each.line[i])}`;
      if (before && each.kind && before.label === each.label && before.colour === each.colour) {
        entries.at(-1).append(`, ${each.kind}`, value);
        return;
      }
      const item = document.createElement("span"), swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = each.colour;
      item.append(swatch, [each.label, each.kind].filter(Boolean).join(", "), value);
      entries.push(item);
    });
    const x = Math.min(at, Math.max(...this.series.flatMap((each) => each.x.at(-1) ?? [])));
    if (this.options.where && Number.isFinite(x)) {
      const place = document.createElement("span");
      place.textContent = this.options.where(x);
      entries.push(place);
    }
    this.legend.replaceChildren(...entries);
  }
}
