import { computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { place, queryValue, setQuery } from "../data/location.js";
import type { XKind } from "./chart.js";

// View options: the same for all charts of a screen, and stored in the address. Values that follow the mouse
// (range, smoothing) are written to the address when the mouse rests; browsers allow few changes of it per second.

const restMs = 250;

/** Choices of the horizontal axis. */
export const xChoices: readonly { readonly value: string; readonly name: string }[] = [
  { value: "step", name: "step" },
  { value: "tokens", name: "tokens" },
  { value: "time", name: "time of day" },
  { value: "relative", name: "time since start" },
  { value: "active", name: "active time" },
];

/** Values that the address holds for all charts. */
export const xAxis = queryValue("x", "step");
/** Log x. */
export const logX = flag("logx");
/** Log y of all charts. */
export const logY = flag("logy");
/** Charts with the opposite setting of log y. */
export const logExceptions = list("log");
/** Whether far points are left out of the view. */
export const clipsOutliers = flag("clip");
/** The search text for metrics. */
export const metricSearch = queryValue("find");
/** Charts shown as tables. */
export const tables = list("table");

/** Format of x. */
export const xKind: ReadonlySignal<XKind> = computed(() => {
  const x = xAxis.value;
  if (x === "time") return "time";
  if (x === "relative" || x === "active") return "span";
  return x === "step" || x === "tokens" ? "count" : "number";
});

/** The x under the cursor. */
export const cursor = signal<number | null>(null);

/** The visible range of x. */
export const zoom = resting<readonly [number, number] | null>(
  () => {
    const [from = Number.NaN, to = Number.NaN] = (place.value.query.get("zoom") ?? "")
      .split(",")
      .map(Number);
    return from < to ? [from, to] : null;
  },
  (range) => ({ zoom: range ? `${round(range[0])},${round(range[1])}` : null }),
);

/** Smoothing from 0 to 0.999. */
export const smoothing = resting(
  () => {
    const value = Number(place.value.query.get("smooth") ?? 0);
    return value > 0 && value < 1 ? value : 0;
  },
  (value) => ({ smooth: value > 0 ? String(value) : null }),
);

/** Whether a chart's y is logarithmic. */
export function isLogY(name: string): boolean {
  return logY.value !== logExceptions.value.includes(name);
}

/** Adds a name to a list in the address, or removes it. */
export function toggleIn(parameter: "log" | "table", name: string): void {
  const names = (parameter === "log" ? logExceptions : tables).value;
  const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
  setQuery({ [parameter]: next.join(",") });
}

function flag(name: string): ReadonlySignal<boolean> {
  return computed(() => place.value.query.get(name) === "1");
}

function list(name: string): ReadonlySignal<readonly string[]> {
  return computed(() => (place.value.query.get(name) ?? "").split(",").filter(Boolean));
}

function resting<T>(read: () => T, write: (value: T) => Record<string, string | null>): Signal<T> {
  const value = signal(read());
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isReading = false;
  effect(() => {
    const next = read(); // Back, Forward and links
    if (JSON.stringify(next) === JSON.stringify(value.peek()) || timer !== undefined) return;
    isReading = true;
    value.value = next;
    isReading = false;
  });
  let isFirst = true;
  effect(() => {
    const next = value.value;
    if (isFirst || isReading) {
      isFirst = false;
      return;
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      setQuery(write(next));
    }, restMs);
  });
  return value;
}

function round(value: number): number {
  return Number(value.toPrecision(10));
}
