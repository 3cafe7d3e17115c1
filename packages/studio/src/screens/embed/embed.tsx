import { useEffect } from "preact/hooks";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { MetricCard } from "../../charts/metric-card.js";
import { sectionsOf } from "../../charts/metrics.js";
import { call } from "../../data/api.js";
import { link, queryValue } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { Name } from "../../parts/words.js";
import "../run/run.css";

const id = queryValue("run");
const wanted = queryValue("metric", "nll");
const chrome = 120;

/** One chart of one run, embedded in another page: a notebook, a report. */
export function Embed() {
  const { value, failure, reload } = useResource<StudioRunDetail>(
    id.value || null,
    (signal) => call("run", { params: { id: id.value }, signal }),
    {
      topics: [`run:${id.value}`],
      on: (event) => (event.kind === "run" && event.run === id.value ? "reload" : undefined),
    },
  );
  useEffect(() => {
    document.title = "Studio";
  }, []);
  const run = value.value;
  if (!id.value)
    return <p class="padded">Add a run and a metric to the address: ?run=ID&metric=nll</p>;
  if (failure.value && !run)
    return <Failure failure={failure.value} what="this run" retry={reload} />;
  if (!run) return <Shapes count={1} height={innerHeight - chrome} />;
  const metrics = sectionsOf(run.series, run.kind).flatMap((section) => section.metrics);
  const metric = metrics.find(({ name, keys }) => [name, ...keys].includes(wanted.value));
  return (
    <main class="embed">
      <h1 class="small">
        <a href={link(`runs/${encodeURIComponent(run.id)}`)} target="_blank" rel="noreferrer">
          <Name>{run.name}</Name>
        </a>
      </h1>
      {metric ? (
        <MetricCard
          metric={metric}
          runs={[run]}
          marks={run.marks}
          height={Math.max(120, innerHeight - chrome)}
        />
      ) : (
        <p>
          This run has no metric <Name>{wanted.value}</Name>.
        </p>
      )}
    </main>
  );
}
