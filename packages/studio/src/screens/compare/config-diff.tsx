import type { StudioRunDetail } from "tinker-ts/wire/studio";
import type { Stroke } from "../../data/colours.js";
import { queryValue, setQuery } from "../../data/location.js";
import { numberOrNull } from "../../data/numbers.js";
import { Name } from "../../parts/words.js";
import { figure } from "../../text/numbers.js";

const everything = queryValue("config");

/** Configurations side by side: differences only, or everything. */
export function ConfigDiff({
  runs,
  configs,
  strokes,
}: {
  readonly runs: readonly StudioRunDetail[];
  readonly configs: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly strokes: ReadonlyMap<string, Stroke>;
}) {
  const keys = [
    ...new Set([...configs.values()].flatMap((config) => [...config.keys()])),
  ].toSorted();
  const isDifferent = (key: string): boolean =>
    new Set([...configs.values()].map((config) => config.get(key) ?? "–")).size > 1;
  const isAll = everything.value === "all";
  const shown = isAll ? keys : keys.filter(isDifferent);
  const lastOf = (run: StudioRunDetail): number | null => numberOrNull(run.nll?.last);
  const best = runs.reduce<StudioRunDetail | null>((found, run) => {
    const value = lastOf(run);
    if (value === null || !Number.isFinite(value)) return found;
    return found === null || value < lastOf(found)! ? run : found;
  }, null);
  return (
    <section class="card" aria-label="Configurations">
      <div class="row padded">
        <h2>Configurations</h2>
        <label class="choice">
          <input
            type="checkbox"
            checked={!isAll}
            onChange={(event) => setQuery({ config: event.currentTarget.checked ? null : "all" })}
          />
          differences only
        </label>
        <span class="grow" />
        {best && (
          <span class="tabular small">
            Lowest final loss: <strong>{figure(lastOf(best))}</strong> (<Name>{best.name}</Name>)
          </span>
        )}
      </div>
      <div class="scroll-x">
        <table class="table config-diff">
          <caption class="unseen">Configurations</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">Key</span>
              </th>
              {runs.map((run) => (
                <th key={run.id} scope="col">
                  <span class="swatch" style={{ background: strokes.get(run.id)?.colour }} />{" "}
                  <Name>{run.name}</Name>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((key) => (
              <tr key={key}>
                <th scope="row" class="mono">
                  <Name>{key}</Name>
                </th>
                {runs.map(({ id }) => (
                  <td key={id} class={`mono ${isAll && isDifferent(key) ? "different" : ""}`}>
                    <Name>{configs.get(id)?.get(key) ?? "–"}</Name>
                  </td>
                ))}
              </tr>
            ))}
            {shown.length === 0 && (
              <tr>
                <td colSpan={runs.length + 1} class="muted">
                  {keys.length === 0
                    ? "No configuration was logged."
                    : `All ${keys.length} keys are equal.`}
                </td>
              </tr>
            )}
            <tr>
              <th scope="row">nll, last</th>
              {runs.map((run) => (
                <td key={run.id} class="tabular">
                  {figure(lastOf(run))}
                </td>
              ))}
            </tr>
            <tr>
              <th scope="row">reward, last</th>
              {runs.map((run) => (
                <td key={run.id} class="tabular">
                  {figure(numberOrNull(run.reward?.last))}
                </td>
              ))}
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}
