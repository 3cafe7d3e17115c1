import type { StudioRunDetail, StudioSeries } from "tinker-ts/wire/studio";
import { readStudioSeries } from "tinker-ts/wire/studio";
import { sectionsOf } from "../../charts/metrics.js";
import { callRaw } from "../../data/api.js";
import { flattened } from "../../data/flatten.js";
import { numberOrNull } from "../../data/numbers.js";
import { bytes, count, figure } from "../../text/numbers.js";
import { moment } from "../../text/times.js";
import { visible } from "../../text/visible.js";

// One self-contained file without scripts, to archive and to share.

const width = 420;
const height = 150;
const keysPerRequest = 40;

/** A run as one HTML file: its curves, marks, configuration and checkpoints. */
export async function exportRun(run: StudioRunDetail): Promise<string> {
  const sections = sectionsOf(run.series, run.kind);
  const keys = sections.flatMap(({ metrics }) => metrics.flatMap((metric) => metric.keys));
  const series: StudioSeries[] = [];
  for (let from = 0; from < keys.length; from += keysPerRequest) {
    const response = await callRaw("series", {
      query: {
        runs: [run.id],
        keys: keys.slice(from, from + keysPerRequest),
        x: "step",
        buckets: 600,
      },
    });
    series.push(...readStudioSeries(await response.arrayBuffer()));
  }
  const facts: [string, string][] = [
    ["base model", run.baseModel ?? "–"],
    ["rank", run.rank === null ? "–" : String(run.rank)],
    ["state", run.statusReason ? `${run.status}: ${run.statusReason}` : run.status],
    ["steps", count(run.step)],
    ["began", moment(run.createdAt)],
    ["last changed", moment(run.updatedAt)],
    ["created from", run.parent ?? "the base model"],
  ];
  const body = [
    `<h1>${text(run.name)}</h1>`,
    table("", facts),
    ...sections.map(({ title, metrics }) =>
      [
        title ? `<h2>${text(title)}</h2>` : "",
        '<div class="curves">',
        ...metrics.map(({ name, keys: names }) => {
          const shown = series.filter(
            ({ key }) => key === names.find((one) => series.some((other) => other.key === one)),
          );
          return `<figure><figcaption>${text(name)} <b>${text(lastOf(shown))}</b></figcaption>${chart(shown)}</figure>`;
        }),
        "</div>",
      ].join("\n"),
    ),
    table(
      "Events",
      run.marks.map(({ x, at, text: words }): [string, string] => [
        `step ${count(x)}, ${moment(at)}`,
        words,
      ]),
    ),
    table("Configuration", [...flattened(run.config)]),
    table(
      "Checkpoints",
      run.checkpoints.map((one): [string, string] => [
        one.path,
        `${one.kind}, step ${one.step ?? "–"}, nll ${figure(numberOrNull(one.nll))}, ${bytes(one.sizeBytes)}`,
      ]),
    ),
    `<p class="foot">Saved from the studio of tinker-ts on ${text(moment(Date.now()))}.</p>`,
  ];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(run.name)}</title>
<style>${styles}</style>
<body>
${body.join("\n")}
</body>
</html>
`;
}

const styles = `
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 32px auto; padding: 0 16px; }
h1 { font-size: 22px; } h2 { font-size: 16px; margin-top: 28px; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 500; opacity: 0.7; }
.curves { display: flex; flex-wrap: wrap; gap: 18px; } figure { margin: 0; }
figcaption { font-size: 13px; } svg { display: block; border-bottom: 1px solid #8886; }
.foot { opacity: 0.6; margin-top: 32px; font-size: 12px; }
.line { fill: none; stroke: #0f766e; stroke-width: 1.5; } .old { stroke-dasharray: 3 3; opacity: 0.5; }
.axis { font-size: 10px; fill: currentColor; opacity: 0.7; }`;

/** Text of unknown origin inside HTML. */
export function text(value: string): string {
  const names: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return visible(value).replace(/[&<>"']/g, (character) => names[character]!);
}

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  if (rows.length === 0) return "";
  const lines = rows.map(
    ([name, value]) => `<tr><th>${text(name)}</th><td>${text(value)}</td></tr>`,
  );
  return `${title ? `<h2>${text(title)}</h2>` : ""}<table>${lines.join("\n")}</table>`;
}

function chart(all: readonly StudioSeries[]): string {
  let [low, high, first, last] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, min, max } of all) {
    x.forEach((at, place) => {
      if (Number.isNaN(min[place]!)) return;
      low = Math.min(low, min[place]!);
      high = Math.max(high, max[place]!);
      first = Math.min(first, at);
      last = Math.max(last, at);
    });
  }
  if (low > high) return "<p>no finite values</p>";
  const toX = (at: number): string =>
    (last === first ? width / 2 : ((at - first) / (last - first)) * width).toFixed(1);
  const toY = (value: number): string =>
    (high === low
      ? height / 2
      : height - 4 - ((value - low) / (high - low)) * (height - 18)
    ).toFixed(1);
  const paths = all.map(({ x, min, max, isAbandoned }) => {
    let path = "";
    let isDown = false;
    x.forEach((at, place) => {
      if (Number.isNaN(max[place]!)) {
        isDown = false;
        return;
      }
      path += `${isDown ? "L" : "M"}${toX(at)} ${toY(max[place]!)}`;
      if (min[place] !== max[place]) path += `V${toY(min[place]!)}`;
      isDown = true;
    });
    return `<path class="line${isAbandoned ? " old" : ""}" d="${path}"/>`;
  });
  const label = (value: number, y: number): string =>
    `<text class="axis" x="2" y="${y}">${text(figure(value))}</text>`;
  return `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">${paths.join("")}${label(high, 10)}${label(low, height - 6)}<text class="axis" x="${width - 2}" y="${height - 6}" text-anchor="end">step ${count(last)}</text></svg>`;
}

function lastOf(all: readonly StudioSeries[]): string {
  const current = all.find(({ isAbandoned }) => !isAbandoned);
  return figure(current?.mean.findLast((value) => !Number.isNaN(value)));
}
