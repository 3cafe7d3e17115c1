import { useEffect, useMemo } from "preact/hooks";
import type { StudioRun, StudioRunDetail } from "tinker-ts/wire/studio";
import { CurveToolbar } from "../../charts/curve-toolbar.js";
import { metricSearch } from "../../charts/curve-view.js";
import type { Line } from "../../charts/draw.js";
import { MetricCard } from "../../charts/metric-card.js";
import { matcher, sectionsOf } from "../../charts/metrics.js";
import { call } from "../../data/api.js";
import { strokesOf } from "../../data/colours.js";
import { flattened } from "../../data/flatten.js";
import { link, queryValue, setQuery } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { askForRuns, runList } from "../../data/runs.js";
import { pinnedMetrics } from "../../data/settings.js";
import { copyText } from "../../parts/copy.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { Name } from "../../parts/words.js";
import { visibleName } from "../../text/visible.js";
import { ConfigDiff } from "./config-diff.js";
import { combined } from "./combine.js";
import { groupNames } from "./group-runs.js";
import "../run/run.css";
import "./compare.css";

const runsText = queryValue("runs");
const by = queryValue("by");
const band = queryValue("band", "range");
const maxRuns = 20;

/** Several runs over each other: curves, groups of runs, differences of their configurations. */
export function Compare() {
  useEffect(() => {
    document.title = "Compare · Studio";
    askForRuns({ q: "", sort: "-updated", archived: false });
  }, []);
  const known = runList.value?.runs ?? [];
  const ids = useMemo(
    () => meant(runsText.value, known).slice(0, maxRuns),
    [runsText.value, known],
  );
  const { value, failure, reload } = useResource<readonly StudioRunDetail[]>(
    ids.length > 0 ? ids.join(",") : null,
    (signal) =>
      Promise.all(ids.map((id) => call<StudioRunDetail>("run", { params: { id }, signal }))),
  );
  const runs = value.value ?? [];
  const strokes = strokesOf(ids);
  const configs = useMemo(
    () => new Map(runs.map((run) => [run.id, withFacts(run)])),
    [value.value],
  );
  const keys = by.value.split(",").filter(Boolean);
  const groups = useMemo(() => groupNames(configs, keys), [configs, by.value]);
  const combine = useMemo(
    () =>
      keys.length === 0
        ? undefined
        : (lines: readonly Line[]) =>
            combined(lines, groups, band.value === "error" ? "error" : "range"),
    [groups, by.value, band.value],
  );
  const found = matcher(metricSearch.value);
  const metrics = useMemo(
    () =>
      sectionsOf(runs.flatMap(({ series }) => series))
        .flatMap((section) => section.metrics)
        .filter(found),
    [value.value, metricSearch.value],
  );
  const pinned = metrics.filter(({ name }) => pinnedMetrics.value.includes(name));
  const shown = [...pinned, ...metrics.filter((metric) => !pinned.includes(metric))];
  const isSearching = metricSearch.value.trim() !== "";
  return (
    <div class="stack">
      <div class="row">
        <h1>Compare</h1>
        <span class="grow" />
        <AddRun known={known} ids={ids} />
        <GroupChoice configs={configs} />
        {keys.length > 0 && (
          <label class="choice">
            band
            <select
              class="field"
              value={band.value}
              onChange={(event) => setQuery({ band: event.currentTarget.value })}
            >
              <option value="range">minimum and maximum</option>
              <option value="error">standard error</option>
            </select>
          </label>
        )}
        <button type="button" class="button" onClick={() => void copyText(location.href)}>
          Copy link
        </button>
      </div>
      <ul class="row legend-runs" aria-label="Runs">
        {ids.map((id) => {
          const run = runs.find((one) => one.id === id);
          const stroke = strokes.get(id)!;
          const group = groups.get(id);
          return (
            <li key={id} class="tag-run">
              <LineSample colour={stroke.colour} dash={stroke.dash} />
              <a href={link(`runs/${encodeURIComponent(id)}`)}>
                <Name>{run?.name ?? id}</Name>
              </a>
              {group && keys.length > 0 && (
                <span class="muted small">
                  <Name>{group}</Name>
                </span>
              )}
              <button
                type="button"
                class="button plain"
                aria-label={`Remove ${visibleName(run?.name ?? id)}`}
                onClick={() => setQuery({ runs: ids.filter((one) => one !== id).join(",") })}
              >
                ✕
              </button>
            </li>
          );
        })}
      </ul>
      {failure.value && <Failure failure={failure.value} what="the runs" retry={reload} />}
      {ids.length === 0 && (
        <p class="card padded muted">
          Choose runs above, or select some under <a href={link("")}>Runs</a> and press <kbd>c</kbd>
          . The address takes names with stars too: <code>?runs=sft-lr-*</code>, and{" "}
          <code>group:NAME</code>.
        </p>
      )}
      {ids.length > 0 && runs.length === 0 && !failure.value && <Shapes count={3} height={200} />}
      {runs.length > 0 && (
        <>
          <CurveToolbar />
          <div class="metrics wide">
            {shown.slice(0, isSearching ? 60 : Math.max(6, pinned.length)).map((metric) => (
              <MetricCard
                key={metric.name}
                metric={metric}
                runs={runs}
                height={230}
                {...(combine ? { combine } : {})}
              />
            ))}
          </div>
          {!isSearching && shown.length > 6 && (
            <p class="muted small">
              {shown.length - 6} more metrics: find one by its name, or pin it in a run.
            </p>
          )}
          <ConfigDiff runs={runs} configs={configs} strokes={strokes} />
          <p>
            <a href={link("playground", { columns: samplersOf(runs).join(",") })}>
              Ask the last checkpoints of these runs the same ▸
            </a>
          </p>
        </>
      )}
    </div>
  );
}

/** The ids in the address: ids, names with stars, `group:NAME`. */
export function meant(
  text: string,
  known: readonly Pick<StudioRun, "id" | "name" | "group">[],
): readonly string[] {
  const ids = new Set<string>();
  for (const part of text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean)) {
    const group = /^group:(.+)$/.exec(part)?.[1];
    const pattern = new RegExp(
      `^${part.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`,
      "i",
    );
    const found = known.filter(({ id, name, group: own }) =>
      group ? own === group : id === part || pattern.test(name),
    );
    // An id that is not in the list yet, or in the archive.
    if (found.length === 0 && !part.includes("*") && !group) ids.add(part);
    for (const { id } of found) ids.add(id);
  }
  return [...ids];
}

function AddRun({
  known,
  ids,
}: {
  readonly known: readonly StudioRun[];
  readonly ids: readonly string[];
}) {
  const others = known.filter(({ id }) => !ids.includes(id)).slice(0, 200);
  if (ids.length >= maxRuns) return <span class="muted small">Maximum of {maxRuns} runs</span>;
  return (
    <label class="choice">
      <span class="unseen">Add a run</span>
      <select
        class="field"
        value=""
        onChange={(event) => setQuery({ runs: [...ids, event.currentTarget.value].join(",") })}
      >
        <option value="">add a run …</option>
        {others.map(({ id, name }) => (
          <option key={id} value={id}>
            {visibleName(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

function GroupChoice({
  configs,
}: {
  readonly configs: ReadonlyMap<string, ReadonlyMap<string, string>>;
}) {
  const names = [...new Set([...configs.values()].flatMap((config) => [...config.keys()]))];
  const chosen = by.value.split(",").filter(Boolean);
  const differing = names.filter(
    (name) => new Set([...configs.values()].map((config) => config.get(name))).size > 1,
  );
  return (
    <label class="choice">
      group by
      <select
        class="field"
        value=""
        onChange={(event) => {
          const name = event.currentTarget.value;
          if (name === "(nothing)") setQuery({ by: null });
          else if (name === "all-but-seed") setQuery({ by: name });
          else
            setQuery({ by: [...chosen.filter((one) => one !== "all-but-seed"), name].join(",") });
        }}
      >
        <option value="">{chosen.length === 0 ? "nothing" : chosen.join(", ").slice(0, 40)}</option>
        {chosen.length > 0 && <option value="(nothing)">nothing</option>}
        <option value="all-but-seed">all but seed</option>
        {differing
          .filter((name) => !chosen.includes(name))
          .map((name) => (
            <option key={name} value={name}>
              {visibleName(name)}
            </option>
          ))}
      </select>
    </label>
  );
}

/** A stroke of a run, beside its name. */
function LineSample({
  colour,
  dash,
}: {
  readonly colour: string;
  readonly dash: readonly number[];
}) {
  return (
    <svg width="22" height="10" aria-hidden="true">
      <line
        x1="0"
        y1="5"
        x2="22"
        y2="5"
        stroke={colour}
        stroke-width="2.5"
        stroke-dasharray={dash.join(" ")}
      />
    </svg>
  );
}

function withFacts(run: StudioRunDetail): ReadonlyMap<string, string> {
  const config = new Map(flattened(run.config));
  if (run.baseModel !== null && !config.has("base_model")) config.set("base_model", run.baseModel);
  if (run.rank !== null && !config.has("rank")) config.set("rank", String(run.rank));
  return config;
}

function samplersOf(runs: readonly StudioRunDetail[]): readonly string[] {
  return runs
    .flatMap(
      ({ checkpoints }) => checkpoints.findLast(({ kind }) => kind === "sampler")?.path ?? [],
    )
    .slice(0, 6);
}
