import { useSignal } from "@preact/signals";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { cursor, metricSearch, xAxis, xKind } from "../../charts/curve-view.js";
import { CurveToolbar } from "../../charts/curve-toolbar.js";
import { signOf } from "../../charts/draw.js";
import { MetricCard } from "../../charts/metric-card.js";
import { matcher, sectionsOf, type Section } from "../../charts/metrics.js";
import { xText } from "../../charts/place-text.js";
import { go, link } from "../../data/location.js";
import { pinnedMetrics } from "../../data/settings.js";
import { Name } from "../../parts/words.js";
import { count } from "../../text/numbers.js";
import { moment } from "../../text/times.js";
import { Spans } from "./spans.js";

/** The curves of a run, one cursor over all of them, and events by step. */
export function Curves({ run }: { readonly run: StudioRunDetail }) {
  const found = matcher(metricSearch.value);
  const isSearching = metricSearch.value.trim() !== "";
  const all = sectionsOf(run.series, run.kind)
    .map((section) => ({ ...section, metrics: section.metrics.filter(found) }))
    .filter(({ metrics }) => metrics.length > 0);
  const pinned = all
    .flatMap(({ metrics }) => metrics)
    .filter(({ name }) => pinnedMetrics.value.includes(name));
  const sections: readonly Section[] =
    pinned.length === 0
      ? all
      : [
          { name: "pinned", title: "", metrics: pinned },
          ...all
            .map((section) => ({
              ...section,
              metrics: section.metrics.filter((one) => !pinned.includes(one)),
            }))
            .filter(({ metrics }) => metrics.length > 0),
        ];
  const growing = run.series
    .filter(({ key, count: size }) => size > 1 && !key.includes(":"))
    .map(({ key }) => key);
  return (
    <div class="stack">
      <CurveToolbar otherAxes={growing} />
      {run.series.length === 0 && (
        <p class="card padded muted">
          No points yet. They appear with the first optimizer step, without a logger.
        </p>
      )}
      {isSearching && all.length === 0 && run.series.length > 0 && (
        <p class="card padded muted">No metric matches.</p>
      )}
      {sections.map((section, index) => (
        <CurveSection
          key={section.name}
          section={section}
          run={run}
          isOpen={index === 0 || isSearching}
        />
      ))}
      {run.source === "server" && run.series.length > 0 && (
        <p class="muted small">
          These metrics are recorded by the server. <code>RunLog</code> of{" "}
          <code>tinker-ts/run-log</code> adds metrics of your own, evaluation, rollouts with rewards
          and the log.
        </p>
      )}
      <CursorBar run={run} />
      <Spans run={run} />
      <Events run={run} />
    </div>
  );
}

function CurveSection({
  section,
  run,
  isOpen,
}: {
  readonly section: Section;
  readonly run: StudioRunDetail;
  readonly isOpen: boolean;
}) {
  const open = useSignal(isOpen);
  const runs = [{ id: run.id, name: run.name }];
  const steps = run.exhibitSteps;
  const kind = steps.rollout.length > 0 ? "rollout" : "datum";
  const pick =
    steps[kind].length > 0 && xAxis.value === "step"
      ? (x: number) => {
          const step = nearest(steps[kind], x);
          go(
            link(`runs/${encodeURIComponent(run.id)}`, {
              tab: kind === "rollout" ? "rollouts" : "data",
              step,
            }),
          );
        }
      : undefined;
  const cards = (
    <div class="metrics">
      {section.metrics.map((metric) => (
        <MetricCard
          key={metric.name}
          metric={metric}
          runs={runs}
          marks={run.marks}
          {...(pick ? { onPick: pick, pickText: "show the data of this step" } : {})}
        />
      ))}
    </div>
  );
  if (section.title === "") return cards;
  return (
    <details
      open={open.value || isOpen}
      onToggle={(event) => (open.value = event.currentTarget.open)}
    >
      <summary>
        <h2 class="inline">
          <Name>{section.title}</Name>
        </h2>{" "}
        <span class="muted tabular">{section.metrics.length}</span>
      </summary>
      {(open.value || isOpen) && cards}
    </details>
  );
}

/** The position of the cursor, with a link to the data of that step. */
function CursorBar({ run }: { readonly run: StudioRunDetail }) {
  const x = cursor.value;
  const steps = run.exhibitSteps;
  const kind = steps.rollout.length > 0 ? "rollout" : "datum";
  if (x === null) return null;
  return (
    <div class="cursor-bar card small tabular">
      {xAxis.value === "step" ? "step" : ""}{" "}
      {xText(xKind.value === "count" ? Math.round(x) : x, xKind.value)}
      {steps[kind].length > 0 && xAxis.value === "step" && (
        <span class="muted"> · click: {kind === "rollout" ? "rollouts" : "data"} of this step</span>
      )}
    </div>
  );
}

function Events({ run }: { readonly run: StudioRunDetail }) {
  if (run.marks.length === 0) return null;
  const shown = run.marks.slice(-50).toReversed();
  return (
    <section class="card padded stack" aria-label="Events">
      <h2>Events</h2>
      <ul class="events">
        {shown.map((mark) => (
          <li
            key={`${mark.at} ${mark.kind} ${mark.text}`}
            class={mark.kind === "failed" ? "bad" : ""}
          >
            <span aria-hidden="true">{signOf(mark.kind)}</span>
            <span class="number muted">step {count(mark.x)}</span>
            <Name>{mark.text}</Name>
            <time class="muted small">{moment(mark.at)}</time>
          </li>
        ))}
      </ul>
      {run.marks.length > shown.length && (
        <p class="muted small">and {count(run.marks.length - shown.length)} earlier</p>
      )}
    </section>
  );
}

function nearest(steps: readonly number[], x: number): number {
  return steps.reduce((best, step) => (Math.abs(step - x) < Math.abs(best - x) ? step : best));
}
