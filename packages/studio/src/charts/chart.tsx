import { useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { StudioMark, StudioSeries } from "tinker-ts/wire/studio";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isDark } from "../data/colours.js";
import { boundsOf, spanOfX, type Bounds } from "./bounds.js";
import {
  drawBand,
  drawLine,
  drawMark,
  drawNonFinite,
  type Band,
  type Line,
  type Plane,
} from "./draw.js";
import "./chart.css";

/** Props of a chart. */
export interface ChartProps {
  readonly lines: readonly Line[];
  readonly bands?: readonly Band[];
  readonly marks?: readonly StudioMark[];
  /** Format of x. */
  readonly xKind: XKind;
  readonly logX: boolean;
  readonly logY: boolean;
  readonly clipsOutliers: boolean;
  /** The visible range of x; null for all of it. */
  readonly zoom: Signal<readonly [number, number] | null>;
  /** The x under the cursor, shared by all charts of a screen. */
  readonly cursor: Signal<number | null>;
  /** Called with the bounds of the view when they change. */
  readonly onBounds?: (bounds: Bounds) => void;
  /** A click on a point. */
  readonly onPick?: (x: number) => void;
  readonly height: number;
  /** One sentence about the curve. */
  readonly summary: string;
  /** The values at an x as text, for screen readers. */
  readonly valueText: (x: number) => string;
}

/** How values of x are written; a count has no parts. */
export type XKind = "count" | "number" | "time" | "span";

/**
 * Curves on a canvas. uPlot has the scales, the axes and the mouse; the curves are drawn here, because each has its
 * own x and a bucket is a range of values, not one.
 */
export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<uPlot | null>(null);
  const shown = useRef<Bounds | null>(null);
  const dark = isDark.value;

  useEffect(() => {
    const element = box.current!;
    const made = makePlot(element, latest, shown);
    plot.current = made;
    made.over.append(line.current!);
    const endGestures = followGestures(made, latest);
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0)
        made.setSize({ width: element.clientWidth, height: latest.current.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      endGestures();
      element.append(line.current!);
      made.destroy();
      plot.current = null;
    };
  }, [dark, props.logX, props.logY, props.xKind, props.height]);

  useEffect(
    () => plot.current?.setData(dataOf(props.lines)),
    [props.lines, props.bands, props.marks, props.clipsOutliers],
  );

  useSignalEffect(() => {
    if (props.zoom.value !== undefined) plot.current?.setData(dataOf(latest.current.lines));
  });

  useSignalEffect(() => {
    const x = props.cursor.value;
    const made = plot.current;
    if (!line.current || !made) return;
    const at = x === null ? NaN : made.valToPos(x, "x");
    const isSeen = at >= 0 && at <= made.over.clientWidth;
    line.current.style.display = isSeen ? "block" : "none";
    if (isSeen) line.current.style.transform = `translateX(${Math.round(at)}px)`;
  });

  const cursor = props.cursor.value;
  const view = viewOf(props);
  return (
    <div
      class="chart"
      role="slider"
      tabIndex={0}
      aria-label={props.summary}
      aria-valuemin={view[0]}
      aria-valuemax={view[1]}
      aria-valuenow={cursor ?? view[1]}
      aria-valuetext={
        cursor === null ? "press the arrow keys to read values" : props.valueText(cursor)
      }
      onKeyDown={(event) => moveCursor(event, latest.current)}
    >
      <div ref={box} style={{ height: `${props.height}px` }} />
      <div ref={line} class="cursor-line" />
    </div>
  );
}

/** The visible range of x. */
function viewOf({ lines, zoom, logX }: ChartProps): readonly [number, number] {
  if (zoom.value) return zoom.value;
  const all = lines.map(({ series }) => series);
  const span = spanOfX(all);
  if (!span) return logX ? [1, 10] : [0, 1];
  if (!logX || span[0] > 0) return span;
  // A log axis begins at the first x above zero.
  const first = all.reduce(
    (least, { x }) => Math.min(least, x.find((value) => value > 0) ?? Infinity),
    Infinity,
  );
  return Number.isFinite(first) ? [first, Math.max(span[1], first * 10)] : [1, 10];
}

function moveCursor(event: KeyboardEvent, { lines, cursor, onPick, ...rest }: ChartProps): void {
  const xs = lines.find(({ series }) => !series.isAbandoned)?.series;
  if (!xs || xs.x.length === 0) return;
  if (event.key === "Enter" && onPick && cursor.value !== null) {
    onPick(cursor.value);
    event.preventDefault();
    return;
  }
  const [from, to] = viewOf({ lines, cursor, ...rest });
  const inView = [...xs.x]
    .filter((x) => x + xs.width / 2 >= from && x <= to)
    .map((x) => x + xs.width / 2);
  if (inView.length === 0) return;
  const at = cursor.value ?? inView.at(-1)!;
  let place = inView.findIndex((x) => x >= at);
  if (place < 0) place = inView.length - 1;
  const page = Math.max(1, Math.round(inView.length / 10));
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    PageUp: page,
    PageDown: -page,
    Home: -inView.length,
    End: inView.length,
  };
  const by = steps[event.key];
  if (by === undefined) return;
  event.preventDefault();
  const first = cursor.value === null && by === -1 ? place : place + by;
  cursor.value = inView[Math.min(inView.length - 1, Math.max(0, first))]!;
}

function dataOf(lines: readonly Line[]): uPlot.AlignedData {
  const span = spanOfX(lines.map(({ series }) => series)) ?? [0, 1];
  return [
    [span[0], span[1]],
    [null, null],
  ];
}

function makePlot(
  element: HTMLElement,
  latest: { readonly current: ChartProps },
  shown: { current: Bounds | null },
): uPlot {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const { xKind, logX, logY, height, lines } = latest.current;
  const axis = {
    stroke: colour("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  const measure = (): Bounds => {
    const { lines: now, bands = [], logY: isLog, clipsOutliers, onBounds } = latest.current;
    const all = now.map(({ series }) => series);
    const bounds = boundsOf(all, { range: viewOf(latest.current), isLog, clipsOutliers });
    const isNew = JSON.stringify(bounds) !== JSON.stringify(shown.current);
    const wide = bands.reduce(
      (sum, { low, high }) => ({
        ...sum,
        low: Math.min(sum.low, ...Array.from(low)),
        high: Math.max(sum.high, ...Array.from(high)),
      }),
      bounds,
    );
    shown.current = bounds;
    if (isNew) queueMicrotask(() => onBounds?.(bounds));
    return wide;
  };
  const options: uPlot.Options = {
    width: element.clientWidth || 300,
    height,
    ms: 1e-3,
    padding: [6, 10, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: xKind === "time", distr: logX ? 3 : 1, range: () => [...viewOf(latest.current)] },
      y: {
        distr: logY ? 3 : 1,
        range: () => {
          const { low, high } = measure();
          return [low, high];
        },
      },
    },
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      {
        ...axis,
        size: 24,
        gap: 4,
        ...(xKind === "time" ? {} : { values: (_, ticks) => ticks.map(xTick(xKind)) }),
        ...(xKind === "count" ? { incrs: wholeSteps } : {}),
      },
      { ...axis, size: 46, gap: 4, values: (_, ticks) => ticks.map(yTick) },
    ],
    cursor: {
      x: false,
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          latest.current.zoom.value = null;
          return null;
        },
      },
    },
    hooks: {
      draw: [(made) => draw(made, latest.current, colour)],
      setCursor: [
        (made) => {
          const { left = -1 } = made.cursor;
          if (left >= 0 && isPointedAt(made))
            latest.current.cursor.value = made.posToVal(left, "x");
        },
      ],
      setSelect: [
        (made) => {
          const { left, width } = made.select;
          if (width < 4) return;
          latest.current.zoom.value = [made.posToVal(left, "x"), made.posToVal(left + width, "x")];
          made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
  return new uPlot(options, dataOf(lines), element);
}

function isPointedAt(made: uPlot): boolean {
  return made.root.matches(":hover");
}

function draw(made: uPlot, props: ChartProps, colour: (name: string) => string): void {
  const { left, top, width, height } = made.bbox;
  const { ctx: context } = made;
  const ratio = devicePixelRatio;
  const plane: Plane = {
    context,
    left,
    top,
    width,
    height,
    ratio,
    toX: (value) => made.valToPos(value, "x", true),
    toY: (value) => made.valToPos(value, "y", true),
    range: viewOf(props),
    isLog: props.logY,
  };
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  for (const mark of props.marks ?? []) {
    drawMark(plane, mark, colour(mark.kind === "failed" ? "--bad" : "--faint"));
  }
  for (const band of props.bands ?? []) drawBand(plane, band);
  // Abandoned tails lie behind what replaced them.
  const order = props.lines.toSorted((one, other) => rank(one.series) - rank(other.series));
  for (const line of order) drawLine(plane, line);
  for (const { series } of order) drawNonFinite(plane, series, colour("--bad"));
  context.restore();
}

function rank({ isAbandoned }: StudioSeries): number {
  return isAbandoned ? 0 : 1;
}

/** Wheel with Ctrl (a pinch on a touchpad), two fingers, and dragging with Shift; a click picks a point. */
function followGestures(made: uPlot, latest: { readonly current: ChartProps }): () => void {
  const abort = new AbortController();
  const options = { signal: abort.signal };
  const over = made.over;
  const fingers = new Map<number, number>();
  let downAt: { x: number; y: number; view: readonly [number, number]; isPan: boolean } | null =
    null;
  const positionOf = (event: MouseEvent): number =>
    event.clientX - over.getBoundingClientRect().left;
  const zoomAround = (position: number, factor: number): void => {
    const left = made.posToVal(position - position * factor, "x");
    const right = made.posToVal(position + (over.clientWidth - position) * factor, "x");
    if (right > left) latest.current.zoom.value = [left, right];
  };
  over.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      zoomAround(positionOf(event), Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100));
    },
    { ...options, passive: false },
  );
  over.addEventListener(
    "mousedown",
    (event) => {
      downAt = {
        x: event.clientX,
        y: event.clientY,
        view: viewOf(latest.current),
        isPan: event.shiftKey,
      };
      if (event.shiftKey) event.stopImmediatePropagation();
    },
    { ...options, capture: true },
  );
  document.addEventListener(
    "mousemove",
    (event) => {
      if (!downAt?.isPan) return;
      const from = made.posToVal(0, "x");
      const by = made.posToVal(event.clientX - downAt.x, "x") - from;
      latest.current.zoom.value = [downAt.view[0] - by, downAt.view[1] - by];
      downAt = { ...downAt, x: event.clientX, view: latest.current.zoom.value };
    },
    options,
  );
  document.addEventListener(
    "mouseup",
    (event) => {
      const down = downAt;
      downAt = null;
      if (!down || down.isPan || !over.contains(event.target as Node)) return;
      if (Math.abs(event.clientX - down.x) > 3 || Math.abs(event.clientY - down.y) > 3) return;
      const { lines, onPick } = latest.current;
      if (lines.length > 0) onPick?.(made.posToVal(positionOf(event), "x"));
    },
    options,
  );
  over.addEventListener("mouseleave", () => (latest.current.cursor.value = null), options);
  over.addEventListener(
    "touchstart",
    (event) => {
      fingers.clear();
      for (const touch of event.touches) fingers.set(touch.identifier, touch.clientX);
      const [touch] = event.touches;
      if (touch)
        latest.current.cursor.value = made.posToVal(
          touch.clientX - over.getBoundingClientRect().left,
          "x",
        );
    },
    { ...options, passive: true },
  );
  over.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length !== 2) return;
      event.preventDefault();
      const [one, other] = [event.touches[0]!, event.touches[1]!];
      const before = Math.abs(
        (fingers.get(one.identifier) ?? 0) - (fingers.get(other.identifier) ?? 1),
      );
      const after = Math.abs(one.clientX - other.clientX);
      if (before > 10 && after > 10) {
        const middle = (one.clientX + other.clientX) / 2 - over.getBoundingClientRect().left;
        zoomAround(middle, before / after);
      }
      for (const touch of event.touches) fingers.set(touch.identifier, touch.clientX);
    },
    { ...options, passive: false },
  );
  return () => abort.abort();
}

function xTick(kind: XKind): (value: number | null) => string {
  return (value) => {
    if (value === null) return "";
    if (kind === "number" || kind === "count") return tick(value);
    if (value < 120) return `${tick(value)} s`;
    if (value < 7200) return `${tick(value / 60)} min`;
    return `${tick(value / 3600)} h`;
  };
}

const wholeSteps = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

function yTick(value: number | null): string {
  return value === null ? "" : tick(value);
}

function tick(value: number): string {
  const size = Math.abs(value);
  // 0.00105 would not fit beside the chart.
  if (size >= 1e9 || (size > 0 && size < 1e-2))
    return Number(value.toPrecision(3)).toExponential().replace("e+", "e").replaceAll("-", "−");
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`.replace("-", "−");
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`.replace("-", "−");
  return String(Number(value.toPrecision(6))).replace("-", "−");
}
