import { count, exactly, figure } from "../text/numbers.js";
import { moment, span } from "../text/times.js";
import type { XKind } from "./chart.js";
import type { Curve } from "./smooth.js";

/** A bucket as text: its value, its range, or its non-finite values. */
export function placeText(series: Curve, place: number): string {
  const { mean, min, max, smoothed } = series;
  const odd = [
    series.nan?.[place] ? "NaN" : "",
    series.plusInfinity?.[place] ? "+Inf" : "",
    series.minusInfinity?.[place] ? "−Inf" : "",
  ].filter(Boolean);
  const value = mean[place]!;
  if (Number.isNaN(value)) return odd.join(" ") || "–";
  const text =
    min[place] === max[place] ? exactly(value) : `${exactly(min[place])} … ${exactly(max[place])}`;
  const smooth = smoothed && !Number.isNaN(smoothed[place]!) ? ` ~ ${figure(smoothed[place])}` : "";
  return [text + smooth, ...odd].join(" ");
}

/** An x as text. */
export function xText(x: number, kind: XKind): string {
  if (kind === "time") return moment(x * 1000);
  if (kind === "span") return span(x * 1000);
  return Number.isInteger(x) ? count(x) : exactly(x);
}
