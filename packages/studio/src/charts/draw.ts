import type { StudioMark, StudioSeries } from "tinker-ts/wire/studio";
import type { Curve } from "./smooth.js";
import { centreOf, visiblePlaces } from "./bounds.js";

/** A curve as it is drawn. */
export interface Line {
  readonly series: Curve;
  readonly colour: string;
  readonly dash: readonly number[];
  /** Drawn faintly, as a member of a group. */
  readonly isFaint?: boolean;
}

/** A band around a line: the least and the largest of a group. */
export interface Band {
  readonly x: ArrayLike<number>;
  readonly low: ArrayLike<number>;
  readonly high: ArrayLike<number>;
  readonly colour: string;
}

/** Layout of the canvas, in its own pixels. */
export interface Plane {
  readonly context: CanvasRenderingContext2D;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly toX: (value: number) => number;
  readonly toY: (value: number) => number;
  readonly range: readonly [number, number];
  readonly isLog: boolean;
}

/** Draws a curve: every bucket from its least to its largest value, so that no peak is lost. */
export function drawLine(plane: Plane, { series, colour, dash, isFaint = false }: Line): void {
  const { context, ratio } = plane;
  const smoothed = series.isAbandoned ? null : series.smoothed;
  context.save();
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineJoin = "round";
  context.lineWidth = (isFaint ? 1 : 1.5) * ratio;
  context.globalAlpha = series.isAbandoned ? 0.45 : smoothed || isFaint ? 0.3 : 1;
  context.setLineDash((series.isAbandoned ? [3, 3] : dash).map((length) => length * ratio));
  if (series.width > 0) {
    fillRange(plane, series);
    if (context.getLineDash().length > 0) strokeValues(plane, series, series.mean);
  } else strokeRaw(plane, series);
  if (smoothed) {
    context.globalAlpha = 1;
    context.lineWidth = 1.8 * ratio;
    strokeValues(plane, series, smoothed);
  }
  context.restore();
}

/**
 * The area between the least and the largest values of buckets. A line that goes up and down through all of them looks
 * the same and takes five times as long to draw, which is what moving a chart of twenty runs cannot afford.
 */
function fillRange(plane: Plane, series: StudioSeries): void {
  const { context, toX, toY, range, isLog } = plane;
  const [first, last] = visiblePlaces(series, range);
  const { min, max } = series;
  const half = context.lineWidth / 2;
  const whole = context.globalAlpha;
  // A dashed line, which distinguishes a run from others, is drawn over the area.
  if (context.getLineDash().length > 0) context.globalAlpha = whole * 0.35;
  context.beginPath();
  for (let place = first; place < last; place++) {
    const begin = place;
    while (place < last && isShown(plane, series, place)) place++;
    if (place === begin) continue;
    if (place === begin + 1) {
      // A single value is a dot.
      const [x, y, radius] = [toX(centreOf(series, begin)), toY(max[begin]!), 2.5 * plane.ratio];
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    }
    const high = (at: number): number => toY(max[at]!) - half;
    const low = (at: number): number => toY(isLog && min[at]! <= 0 ? max[at]! : min[at]!) + half;
    const left = toX(centreOf(series, begin)) - half;
    const right = toX(centreOf(series, place - 1)) + half;
    context.moveTo(left, low(begin));
    context.lineTo(left, high(begin));
    for (let at = begin; at < place; at++) context.lineTo(toX(centreOf(series, at)), high(at));
    context.lineTo(right, high(place - 1));
    context.lineTo(right, low(place - 1));
    for (let at = place - 1; at >= begin; at--) context.lineTo(toX(centreOf(series, at)), low(at));
    context.closePath();
    // A peak of one bucket, less than a pixel wide, would fade towards its tip.
    for (let at = begin; at < place; at++) {
      const neighbours = [Math.max(begin, at - 1), Math.min(place - 1, at + 1)];
      const top = high(at);
      const bottom = low(at);
      const above = Math.min(...neighbours.map(high)) - top;
      const below = bottom - Math.max(...neighbours.map(low));
      if (above <= 4 * half && below <= 4 * half) continue;
      context.rect(toX(centreOf(series, at)) - half, top, 2 * half, bottom - top);
    }
  }
  context.fill();
  context.globalAlpha = whole;
}

/** Whether there is a value to draw at an index. */
function isShown({ isLog }: Plane, { mean, max }: StudioSeries, place: number): boolean {
  return !Number.isNaN(mean[place]!) && (!isLog || max[place]! > 0);
}

function strokeRaw(plane: Plane, series: StudioSeries): void {
  const { context, toX, toY, range, ratio, isLog } = plane;
  const [first, last] = visiblePlaces(series, range);
  const { min, max } = series;
  context.beginPath();
  let isDown = false;
  const dots: [number, number][] = [];
  for (let place = first; place < last; place++) {
    if (!isShown(plane, series, place)) {
      isDown = false;
      continue;
    }
    const x = toX(centreOf(series, place));
    const high = toY(max[place]!);
    const least = min[place]!;
    const low = least === max[place]! ? high : toY(isLog && least <= 0 ? max[place]! : least);
    if (isDown) context.lineTo(x, high);
    else context.moveTo(x, high);
    if (low !== high) context.lineTo(x, low);
    const isLone =
      !isDown && (place + 1 >= last || !isShown(plane, series, place + 1)) && low === high;
    if (isLone) dots.push([x, high]);
    isDown = true;
  }
  context.stroke();
  for (const [x, y] of dots) {
    context.beginPath();
    context.arc(x, y, 2.5 * ratio, 0, 2 * Math.PI);
    context.fill();
  }
}

function strokeValues(plane: Plane, series: StudioSeries, values: Float32Array): void {
  const { context, toX, toY, range, isLog } = plane;
  const [first, last] = visiblePlaces(series, range);
  context.beginPath();
  let isDown = false;
  for (let place = first; place < last; place++) {
    const value = values[place]!;
    if (Number.isNaN(value) || (isLog && value <= 0)) {
      isDown = false;
      continue;
    }
    const x = toX(centreOf(series, place));
    if (isDown) context.lineTo(x, toY(value));
    else context.moveTo(x, toY(value));
    isDown = true;
  }
  context.stroke();
}

/** Fills between the least and the largest of a group. */
export function drawBand({ context, toX, toY }: Plane, { x, low, high, colour }: Band): void {
  context.save();
  context.fillStyle = colour;
  context.globalAlpha = 0.16;
  context.beginPath();
  for (let place = 0; place < x.length; place++) context.lineTo(toX(x[place]!), toY(high[place]!));
  for (let place = x.length - 1; place >= 0; place--)
    context.lineTo(toX(x[place]!), toY(low[place]!));
  context.fill();
  context.restore();
}

/** Values that are not finite, as triangles at their x: NaN and −Inf below, +Inf above. */
export function drawNonFinite(plane: Plane, series: StudioSeries, colour: string): void {
  const { context, toX, range, top, height, ratio } = plane;
  const [first, last] = visiblePlaces(series, range);
  const size = 4 * ratio;
  context.save();
  context.fillStyle = colour;
  let lastX = -Infinity;
  for (let place = first; place < last; place++) {
    const isUp = Boolean(series.plusInfinity?.[place]);
    const isDown = Boolean(series.minusInfinity?.[place]);
    if (!series.nan?.[place] && !isUp && !isDown) continue;
    const x = toX(centreOf(series, place));
    if (x - lastX < 2 * ratio) continue; // thousands of them are one row of triangles
    lastX = x;
    if (series.nan?.[place]) triangle(context, x, top + height - size - ratio, size, true);
    if (isUp) triangle(context, x, top + size + ratio, size, true);
    if (isDown) triangle(context, x, top + height - size - ratio, size, false);
  }
  context.restore();
}

function triangle(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  size: number,
  isUp: boolean,
): void {
  const by = isUp ? -size : size;
  context.beginPath();
  context.moveTo(x, y + by);
  context.lineTo(x - size, y - by);
  context.lineTo(x + size, y - by);
  context.fill();
}

const markSigns: Readonly<Record<StudioMark["kind"], string>> = {
  failed: "⚠",
  checkpoint: "◆",
  loaded: "↑",
  attempt: "↻",
  paused: "‖",
  resumed: "▸",
  stopped: "■",
};

/** The sign of an event. */
export function signOf(kind: StudioMark["kind"]): string {
  return markSigns[kind];
}

/** A line at an event. */
export function drawMark(plane: Plane, { x, kind }: StudioMark, colour: string): void {
  const { context, toX, left, width, top, height, ratio, range } = plane;
  if (x < range[0] || x > range[1]) return;
  const at = Math.round(toX(x)) + 0.5;
  const half = 5 * ratio;
  const signAt = Math.min(left + width - half, Math.max(left + half, at)); // whole at the edges too
  context.save();
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.globalAlpha = 0.5;
  context.lineWidth = ratio;
  context.setLineDash([2 * ratio, 4 * ratio]);
  context.beginPath();
  context.moveTo(at, top + 10 * ratio);
  context.lineTo(at, top + height);
  context.stroke();
  context.globalAlpha = 1;
  context.font = `${9 * ratio}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.fillText(markSigns[kind], signAt, top + 8 * ratio);
  context.restore();
}
