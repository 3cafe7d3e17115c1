import { Name } from "../parts/words.js";
import { exactly } from "../text/numbers.js";
import { placeText, xText } from "./place-text.js";
import type { Curve } from "./smooth.js";
import { xKind } from "./curve-view.js";

const maxRows = 1200;

/** The numbers of a chart. */
export function SeriesTable({
  series,
  nameOf,
  height,
}: {
  readonly series: readonly Curve[];
  readonly nameOf: (run: string) => string;
  readonly height: number;
}) {
  const isReduced = series.some(({ width }) => width > 0);
  const isSmoothed = series.some(({ smoothed }) => smoothed !== null);
  const rows = series
    .flatMap((one) => Array.from(one.x, (_, place) => ({ one, place })))
    .slice(0, maxRows);
  return (
    <div
      class="series-table"
      style={{ height: `${height}px` }}
      tabIndex={0}
      role="region"
      aria-label="Values"
    >
      <table class="table tabular">
        <caption class="unseen">Points</caption>
        <thead>
          <tr>
            {series.length > 1 && <th>run</th>}
            <th class="number">{isReduced ? "from x" : "x"}</th>
            <th class="number">{isReduced ? "mean" : "value"}</th>
            {isReduced && <th class="number">least</th>}
            {isReduced && <th class="number">largest</th>}
            {isReduced && <th class="number">points</th>}
            {isSmoothed && <th class="number">smoothed</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ one, place }) => (
            <tr key={`${one.run} ${one.attempt} ${place}`}>
              {series.length > 1 && (
                <td>
                  <Name>{nameOf(one.run)}</Name>
                  {one.isAbandoned && <span class="muted"> attempt {one.attempt}, replaced</span>}
                </td>
              )}
              <td class="number">{xText(one.x[place]!, xKind.value)}</td>
              <td class="number">
                {Number.isNaN(one.mean[place]!) ? placeText(one, place) : exactly(one.mean[place])}
              </td>
              {isReduced && <td class="number">{exactly(one.min[place])}</td>}
              {isReduced && <td class="number">{exactly(one.max[place])}</td>}
              {isReduced && <td class="number">{one.count?.[place] ?? 1}</td>}
              {isSmoothed && <td class="number">{exactly(one.smoothed?.[place])}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
