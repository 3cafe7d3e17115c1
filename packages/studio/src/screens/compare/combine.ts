import type { Band, Line } from "../../charts/draw.js";
import type { Curve } from "../../charts/smooth.js";
import { colourOf } from "../../data/colours.js";

/**
 * Members of a group as one line with a band. The mean of a step is over the members that have it, and so is the
 * band: the least and the largest, or the mean and its standard error. Members stay as faint lines.
 */
export function combined(
  lines: readonly Line[],
  groups: ReadonlyMap<string, string>,
  kind: "range" | "error",
): { readonly lines: readonly Line[]; readonly bands: readonly Band[] } {
  const members = new Map<string, Line[]>();
  for (const line of lines) {
    if (line.series.isAbandoned) continue;
    const name = groups.get(line.series.run) ?? line.series.run;
    const list = members.get(name);
    if (list) list.push(line);
    else members.set(name, [line]);
  }
  const means: Line[] = [];
  const bands: Band[] = [];
  for (const [name, list] of members) {
    const colour = colourOf(name);
    const { series, low, high } = meanOf(
      list.map((line) => line.series),
      name,
      kind,
    );
    means.push({ series, colour, dash: [] });
    if (list.length > 1)
      bands.push({
        x: Float64Array.from(series.x, (x) => x + series.width / 2),
        low,
        high,
        colour,
      });
  }
  const faint = lines.map((line) => ({
    ...line,
    colour: colourOf(groups.get(line.series.run) ?? line.series.run),
    series: { ...line.series, smoothed: null },
    isFaint: true,
  }));
  return { lines: [...faint.filter(({ series }) => !series.isAbandoned), ...means], bands };
}

/** The mean of several series at every x that one of them has. */
export function meanOf(
  all: readonly Curve[],
  name: string,
  kind: "range" | "error",
): { readonly series: Curve; readonly low: Float32Array; readonly high: Float32Array } {
  const values = new Map<number, number[]>();
  const width = Math.max(0, ...all.map((one) => one.width));
  for (const one of all) {
    const source = one.smoothed ?? one.mean;
    one.x.forEach((x, place) => {
      const value = source[place]!;
      if (Number.isNaN(value)) return;
      // Buckets lie on multiples of their width, so those of the coarsest grid hold all others.
      const at = width > 0 ? Math.floor(x / width) * width : x;
      const list = values.get(at);
      if (list) list.push(value);
      else values.set(at, [value]);
    });
  }
  const x = Float64Array.from(values.keys()).toSorted();
  const mean = new Float32Array(x.length);
  const low = new Float32Array(x.length);
  const high = new Float32Array(x.length);
  const count = new Uint32Array(x.length);
  x.forEach((at, place) => {
    const list = values.get(at)!;
    const middle = list.reduce((sum, value) => sum + value, 0) / list.length;
    const variance =
      list.length > 1
        ? list.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (list.length - 1)
        : 0;
    const error = Math.sqrt(variance / list.length);
    mean[place] = middle;
    count[place] = list.length;
    low[place] = kind === "error" ? middle - error : Math.min(...list);
    high[place] = kind === "error" ? middle + error : Math.max(...list);
  });
  const first = all[0]!;
  const series: Curve = {
    ...first,
    run: name,
    width,
    total: x.length,
    length: x.length,
    isAbandoned: false,
    x,
    mean,
    min: mean,
    max: mean,
    smoothed: null,
    count,
    nan: null,
    plusInfinity: null,
    minusInfinity: null,
  };
  return { series, low, high };
}
