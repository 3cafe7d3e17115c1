import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { StudioCheckpoint, StudioCheckpoints } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { now } from "../../data/clock.js";
import { link, queryValue, setQuery } from "../../data/location.js";
import { numberOrNull } from "../../data/numbers.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { Name } from "../../parts/words.js";
import { bytes, count, figure } from "../../text/numbers.js";
import { ago, moment, span } from "../../text/times.js";
import { visibleName } from "../../text/visible.js";
import { Actions } from "./actions.js";
import { ComparePair } from "./compare-pair.js";
import { Lineage } from "./lineage.js";
import "./checkpoints.css";

const run = queryValue("run");
const kind = queryValue("kind");
const sort = queryValue("sort", "-created");
const dayMs = 86_400_000;

/** Saved weights: their origin, size and actions. */
export function Checkpoints() {
  useEffect(() => {
    document.title = "Checkpoints · Studio";
  }, []);
  const { value, failure, reload } = useResource<StudioCheckpoints>(
    "all",
    (abort) => call("checkpoints", { signal: abort }),
    { on: (event) => (event.kind === "checkpoint" ? "reload" : undefined) },
  );
  const chosen = useSignal<readonly string[]>([]);
  const lineage = useSignal<string | null>(null);
  const list = value.value;
  if (!list) {
    return failure.value ? (
      <Failure failure={failure.value} what="the checkpoints" retry={reload} />
    ) : (
      <Shapes count={5} />
    );
  }
  const all = list.checkpoints;
  const runs = [...new Map(all.map((one) => [one.run, one.runName]))];
  const shown = sorted(
    all.filter(
      (one) => (!run.value || one.run === run.value) && (!kind.value || one.kind === kind.value),
    ),
    sort.value,
  );
  const expiring = all.filter(
    ({ expiresAt }) => expiresAt !== null && expiresAt - now.value < dayMs,
  ).length;
  const pair = chosen.value.flatMap((path) => all.find((one) => one.path === path) ?? []);
  const toggle = (path: string): void => {
    chosen.value = chosen.value.includes(path)
      ? chosen.value.filter((one) => one !== path)
      : [...chosen.value.slice(-1), path];
  };
  return (
    <div class="stack">
      <div class="row">
        <h1>Checkpoints</h1>
        <span class="muted tabular">
          {count(all.length)}, {bytes(list.totalBytes)}
          {expiring > 0 && `, ${count(expiring)} expire within a day`}
        </span>
        <span class="grow" />
        <label class="choice">
          run
          <select
            class="field run-choice"
            value={run.value}
            onChange={(event) => setQuery({ run: event.currentTarget.value })}
          >
            <option value="">all</option>
            {runs.map(([id, name]) => (
              <option key={id} value={id}>
                {visibleName(name)}
              </option>
            ))}
          </select>
        </label>
        <label class="choice">
          kind
          <select
            class="field"
            value={kind.value}
            onChange={(event) => setQuery({ kind: event.currentTarget.value })}
          >
            <option value="">all</option>
            <option value="training">training</option>
            <option value="sampler">sampler</option>
          </select>
        </label>
        <label class="choice">
          sort by
          <select
            class="field"
            value={sort.value}
            onChange={(event) => setQuery({ sort: event.currentTarget.value })}
          >
            <option value="-created">newest</option>
            <option value="-size">largest</option>
            <option value="nll">lowest nll</option>
            <option value="name">name</option>
            <option value="expires">expiry</option>
          </select>
        </label>
      </div>
      {failure.value && <Failure failure={failure.value} what="the checkpoints" retry={reload} />}
      {pair.length === 2 && <ComparePair one={pair[0]!} other={pair[1]!} />}
      {shown.length === 0 ? (
        <p class="card padded muted">
          {all.length === 0
            ? "No checkpoints yet. saveState saves weights with the optimizer state, saveWeightsForSampler weights to sample from; “Save now” on a running run saves a checkpoint from here."
            : "No matches."}
        </p>
      ) : (
        <div class="card scroll-x">
          <table class="table cards checkpoints">
            <caption class="unseen">Checkpoints</caption>
            <thead>
              <tr>
                <th>
                  <span class="unseen">Compare</span>
                </th>
                <th>Name</th>
                <th>Run</th>
                <th>Kind</th>
                <th class="number">Step</th>
                <th class="number">nll</th>
                <th class="number">Size</th>
                <th>Saved</th>
                <th>Expires</th>
                <th>Public</th>
                <th>
                  <span class="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.path} data-path={one.path}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${visibleName(one.name)}`}
                      checked={chosen.value.includes(one.path)}
                      onChange={() => toggle(one.path)}
                    />
                  </td>
                  <td class="name" title={one.path}>
                    <strong>
                      <Name>{one.name}</Name>
                    </strong>
                    {one.parent && (
                      <button
                        type="button"
                        class="button plain small"
                        onClick={() =>
                          (lineage.value = lineage.value === one.path ? null : one.path)
                        }
                      >
                        lineage
                      </button>
                    )}
                  </td>
                  <td>
                    <a href={link(`runs/${encodeURIComponent(one.run)}`)}>
                      <Name>{one.runName}</Name>
                    </a>
                  </td>
                  <td data-label="kind">{one.kind}</td>
                  <td class="number" data-label="step">
                    {one.step === null ? "–" : count(one.step)}
                  </td>
                  <td class="number" data-label="nll">
                    {figure(numberOrNull(one.nll))}
                  </td>
                  <td class="number" data-label="size">
                    {bytes(one.sizeBytes)}
                  </td>
                  <td class="tabular" title={moment(one.createdAt)} data-label="saved">
                    {ago(one.createdAt, now.value)}
                  </td>
                  <td class="tabular" data-label="expires">
                    {one.expiresAt === null ? "never" : `in ${span(one.expiresAt - now.value)}`}
                  </td>
                  <td data-label="public">{one.isPublic ? "yes" : "no"}</td>
                  <td>
                    <Actions checkpoint={one} done={reload} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {lineage.value && <Lineage path={lineage.value} all={all} />}
    </div>
  );
}

function sorted(list: readonly StudioCheckpoint[], by: string): readonly StudioCheckpoint[] {
  const key = (one: StudioCheckpoint): number | string => {
    if (by === "-size") return -one.sizeBytes;
    if (by === "nll") return numberOrNull(one.nll) ?? Infinity;
    if (by === "name") return one.name;
    if (by === "expires") return one.expiresAt ?? Infinity;
    return -one.createdAt;
  };
  return list.toSorted((one, other) =>
    key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0,
  );
}
