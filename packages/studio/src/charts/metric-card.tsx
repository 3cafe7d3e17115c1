import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { StudioMark, StudioSeries } from "tinker-ts/wire/studio";
import { addressOf } from "../data/api.js";
import { strokesOf } from "../data/colours.js";
import { download } from "../data/download.js";
import { setQuery } from "../data/location.js";
import { useSeries } from "../data/series.js";
import { pinnedMetrics } from "../data/settings.js";
import { Failure } from "../parts/failure.js";
import { attempt } from "../parts/toast.js";
import { Name } from "../parts/words.js";
import { count, figure } from "../text/numbers.js";
import { visibleName } from "../text/visible.js";
import { centreOf, nearestPlace, type Bounds } from "./bounds.js";
import { Chart } from "./chart.js";
import {
  clipsOutliers,
  cursor,
  isLogY,
  logX,
  smoothing,
  tables,
  toggleIn,
  xAxis,
  xKind,
  zoom,
} from "./curve-view.js";
import type { Band, Line } from "./draw.js";
import type { Metric } from "./metrics.js";
import { placeText, xText } from "./place-text.js";
import { SeriesTable } from "./series-table.js";
import { finerForSmoothing, halfLivesBefore, toCurve, type Curve } from "./smooth.js";

/** A run with a curve in the chart. */
export interface ShownRun {
  readonly id: string;
  readonly name: string;
}

const buckets = 600;
const chartHeight = 176;

/** One metric of one or several runs: its chart or its table, its values at the cursor. */
export function MetricCard({
  metric,
  runs,
  marks,
  onPick,
  pickText,
  combine,
  height = chartHeight,
}: {
  readonly metric: Metric;
  readonly runs: readonly ShownRun[];
  readonly marks?: readonly StudioMark[];
  /** Called on a click on a point. */
  readonly onPick?: (x: number) => void;
  readonly pickText?: string;
  /** Combines members of groups: lines and bands instead of the runs' own. */
  readonly combine?: (lines: readonly Line[]) => {
    readonly lines: readonly Line[];
    readonly bands: readonly Band[];
  };
  readonly height?: number;
}) {
  const { name, keys } = metric;
  const box = useRef<HTMLElement>(null);
  const isSeen = useSignal(false);
  useEffect(() => {
    // Charts load their data when they are scrolled into view.
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) isSeen.value = true;
      },
      { rootMargin: "200px" },
    );
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const ids = runs.map(({ id }) => id);
  // The change of x per step: the unit of smoothing.
  const unit = useSignal(xAxis.value === "step" ? 1 : 0);
  const halfLife = halfLifeOf(smoothing.value) * unit.value;
  const range = zoom.value ? widened(zoom.value) : null;
  const { series, failure } = useSeries({
    runs: isSeen.value ? ids : [],
    keys: isSeen.value ? keys : [],
    x: xAxis.value,
    range: range && [range[0] - halfLivesBefore * halfLife, range[1]],
    buckets: halfLife > 0 ? buckets * finerForSmoothing : buckets,
  });
  useEffect(() => {
    unit.value = xAxis.value === "step" ? 1 : 0;
  }, [xAxis.value]);
  useEffect(() => {
    if (unit.value === 0) unit.value = stepOf(series.value ?? []);
  }, [series.value]);
  const strokes = strokesOf(ids);
  const bounds = useSignal<Bounds | null>(null);
  const answer = series.value;
  const colours = JSON.stringify([...strokes]);
  const drawn = useMemo(() => {
    const lines = chosen(answer ?? [], keys).map((one): Line => ({
      series: toCurve(one, halfLife, range, buckets),
      ...(strokes.get(one.run) ?? { colour: "#888", dash: [] }),
    }));
    return combine ? combine(lines) : { lines, bands: [] as readonly Band[] };
  }, [answer, combine, colours, halfLife, range?.[0], range?.[1]]);
  const shown = drawn.lines.map((line) => line.series);
  const isLog = isLogY(name);
  const isPinned = pinnedMetrics.value.includes(name);
  const isTable = tables.value.includes(name);
  const nameOf = (id: string): string => runs.find((run) => run.id === id)?.name ?? id;
  const valueText = (x: number): string => {
    const at = `${axisName(xAxis.value)} ${xText(x, xKind.value)}`;
    const values = shown
      .filter((one) => !one.isAbandoned)
      .map((one) => {
        const place = nearestPlace(one, x);
        const value = place < 0 ? "nothing" : placeText(one, place);
        return runs.length > 1 ? `${visibleName(nameOf(one.run))} ${value}` : value;
      });
    return `${at}: ${values.join(", ")}`;
  };
  return (
    <figure ref={box} class="card metric" data-metric={name} aria-label={name}>
      <figcaption>
        <h2 class="cut" title={keys.join(", ")}>
          <Name>{name}</Name>
        </h2>
        {runs.length === 1 && <Reading series={shown} />}
        <span class="actions">
          <button
            type="button"
            class="button plain"
            aria-pressed={isPinned}
            aria-label={isPinned ? "Unpin this metric" : "Pin this metric"}
            title={isPinned ? "Unpin" : "Pin to the top of every run"}
            onClick={() => {
              pinnedMetrics.value = isPinned
                ? pinnedMetrics.value.filter((one) => one !== name)
                : [...pinnedMetrics.value, name];
            }}
          >
            {isPinned ? "★" : "☆"}
          </button>
          <button
            type="button"
            class="button plain"
            aria-pressed={isLog}
            aria-label="Log scale of this chart"
            title="Log scale"
            onClick={() => toggleIn("log", name)}
          >
            log
          </button>
          <button
            type="button"
            class="button plain"
            aria-pressed={isTable}
            aria-label="Show as a table"
            title="Table"
            onClick={() => toggleIn("table", name)}
          >
            table
          </button>
          <button
            type="button"
            class="button plain"
            aria-label="All points as CSV"
            title="All points as CSV"
            onClick={() => void saveCsv(ids, keys, name)}
          >
            csv
          </button>
        </span>
      </figcaption>
      {failure.value && !answer && <Failure failure={failure.value} what={name} />}
      {isTable ? (
        <SeriesTable series={shown} nameOf={nameOf} height={height} />
      ) : (
        <Chart
          lines={drawn.lines}
          bands={drawn.bands}
          {...(marks && xAxis.value === "step" ? { marks } : {})}
          xKind={xKind.value}
          logX={logX.value}
          logY={isLog}
          clipsOutliers={clipsOutliers.value}
          zoom={zoom}
          cursor={cursor}
          onBounds={(next) => (bounds.value = next)}
          {...(onPick ? { onPick } : {})}
          height={height}
          summary={summaryOf(name, shown)}
          valueText={valueText}
        />
      )}
      {runs.length > 1 && cursor.value !== null && (
        <ul class="values small tabular">
          {drawn.lines
            .filter((line) => !line.isFaint && !line.series.isAbandoned && line.series.x.length > 0)
            .map(({ series: one, colour }) => {
              const place = nearestPlace(one, cursor.value!);
              return (
                <li key={one.run} class="cut">
                  <span class="swatch" style={{ background: colour }} />{" "}
                  <Name>{nameOf(one.run)}</Name> <strong>{placeText(one, place)}</strong>
                  {combine && <span class="muted"> n {one.count?.[place] ?? 1}</span>}
                </li>
              );
            })}
        </ul>
      )}
      <Notes series={shown} bounds={bounds.value} isTable={isTable} />
      {onPick && pickText && cursor.value !== null && <span class="unseen">Enter: {pickText}</span>}
    </figure>
  );
}

/** The value at the cursor, else the last one. */
function Reading({ series }: { readonly series: readonly Curve[] }) {
  const current = series.find((one) => !one.isAbandoned);
  if (!current || current.x.length === 0) return null;
  const at = cursor.value;
  const place = at === null ? current.x.length - 1 : nearestPlace(current, at);
  const old = at === null ? undefined : series.find((one) => one.isAbandoned && covers(one, at));
  return (
    <span class="reading tabular" title={`attempt ${current.attempt}`}>
      {at !== null && (
        <span class="muted">
          {xText(current.width > 0 ? current.x[place]! : centreOf(current, place), xKind.value)}
          {current.width > 0 && "…"}{" "}
        </span>
      )}
      {placeText(current, place)}
      {old && (
        <span class="muted" title={`attempt ${old.attempt}, replaced`}>
          {" "}
          (attempt {old.attempt}: {placeText(old, nearestPlace(old, at!))})
        </span>
      )}
    </span>
  );
}

/** Counts of values that the chart cannot show. */
function Notes({
  series,
  bounds,
  isTable,
}: {
  readonly series: readonly StudioSeries[];
  readonly bounds: Bounds | null;
  readonly isTable: boolean;
}) {
  const sum = (column: "nan" | "plusInfinity" | "minusInfinity"): number =>
    series.reduce((all, one) => all + (one[column]?.reduce((a, b) => a + b, 0) ?? 0), 0);
  const notes = [
    { size: sum("nan"), text: "NaN", sign: "▲" },
    { size: sum("plusInfinity"), text: "+Inf", sign: "▲" },
    { size: sum("minusInfinity"), text: "−Inf", sign: "▼" },
  ].filter(({ size }) => size > 0);
  const outside = isTable || !bounds ? 0 : bounds.above + bounds.below;
  const isReduced = series.some(({ width }) => width > 0);
  if (notes.length === 0 && outside === 0 && !bounds?.notPositive && !isReduced) return null;
  return (
    <div class="notes small">
      {notes.map(({ size, text, sign }) => (
        <span key={text} class="bad tabular">
          {sign} {count(size)} {text}
        </span>
      ))}
      {outside > 0 && (
        <button type="button" class="button plain warn" onClick={() => setQuery({ clip: null })}>
          {bounds!.above > 0 &&
            `${count(bounds!.above)} ${bounds!.above === 1 ? "point" : "points"} above`}
          {bounds!.above > 0 && bounds!.below > 0 && ", "}
          {bounds!.below > 0 && `${count(bounds!.below)} below`}
        </button>
      )}
      {bounds && bounds.notPositive > 0 && (
        <span class="warn">{count(bounds.notPositive)} values ≤ 0 are not on a log axis</span>
      )}
    </div>
  );
}

// Where a run has a metric under several names, the best one is drawn.
function chosen(series: readonly StudioSeries[], keys: readonly string[]): readonly StudioSeries[] {
  const best = new Map<string, string>();
  for (const key of keys) {
    for (const one of series)
      if (one.key === key && one.x.length > 0 && !best.has(one.run)) best.set(one.run, key);
  }
  return series.filter((one) => best.get(one.run) === one.key);
}

function covers({ x, width }: StudioSeries, at: number): boolean {
  return x.length > 0 && at >= x[0]! - 0.5 && at <= x.at(-1)! + width + 0.5;
}

function widened([from, to]: readonly [number, number]): readonly [number, number] {
  const by = (to - from) / 4; // panning a little shows points at once
  return [from - by, to + by];
}

/** The half-life in steps: 6.6 at 0.9, 693 at 0.999. */
function halfLifeOf(slider: number): number {
  return slider > 0 ? Math.log(0.5) / Math.log(slider) : 0;
}

/** The change of x per step on another axis; a power of two, so that it changes rarely while a run grows. */
function stepOf(series: readonly StudioSeries[]): number {
  const one = series.find(({ total, isAbandoned }) => total > 1 && !isAbandoned);
  const width = one ? (one.x.at(-1)! - one.x[0]!) / (one.total - 1) : 0;
  return width > 0 ? 2 ** Math.round(Math.log2(width)) : 0;
}

function axisName(x: string): string {
  return x === "relative" || x === "active" ? "after" : x === "time" ? "at" : x;
}

function summaryOf(name: string, series: readonly StudioSeries[]): string {
  const current = series.filter((one) => !one.isAbandoned && one.x.length > 0);
  if (current.length === 0) return `${name}: no points yet`;
  if (current.length > 1) return `${name} of ${current.length} runs`;
  const [one] = current;
  const finite = [...one!.mean].filter((value) => !Number.isNaN(value));
  const least = finite.reduce((a, b) => Math.min(a, b), Infinity);
  return `${name}: ${count(one!.total)} points, from ${figure(finite[0])} to ${figure(finite.at(-1))}, least ${figure(least)}`;
}

async function saveCsv(
  ids: readonly string[],
  keys: readonly string[],
  name: string,
): Promise<void> {
  for (const id of ids) {
    await attempt(() =>
      download(
        addressOf("csv", { params: { id }, query: { keys } }),
        `${name.replace(/[^\w.-]+/g, "-")}.csv`,
      ),
    );
  }
}
