import type { StudioRun } from "tinker-ts/wire/studio";
import { now } from "../../data/clock.js";
import { colourOf } from "../../data/colours.js";
import { link } from "../../data/location.js";
import { lossName } from "../../data/loss-name.js";
import { numberOf } from "../../data/numbers.js";
import { Spark } from "../../parts/spark.js";
import { Name } from "../../parts/words.js";
import { figure } from "../../text/numbers.js";
import { ago } from "../../text/times.js";
import { OwnRun } from "./no-runs.js";

/** The first run, and three things to do with it. */
export function Welcome({ runs }: { readonly runs: readonly StudioRun[] }) {
  const run = runs.find(({ nll, status }) => nll !== null && status !== "failed") ?? runs[0];
  if (!run) return null;
  const { nll, reward } = run;
  const shown = run.kind === "rl" ? (reward ?? nll) : (nll ?? reward);
  const id = encodeURIComponent(run.id);
  return (
    <section class="card padded welcome" aria-label="Welcome">
      <h2>Welcome. {runs.length === 1 ? "1 run recorded." : `${runs.length} runs recorded.`}</h2>
      <div class="row">
        <span class="grow">
          <a href={link(`runs/${id}`)}>
            <strong>
              <Name>{run.name}</Name>
            </strong>
          </a>
          <span class="muted">
            {run.baseModel && (
              <>
                {" · "}
                <Name>{run.baseModel}</Name>
              </>
            )}
            {run.rank !== null && ` · rank ${run.rank}`} ·{" "}
            {run.status === "running" ? "running" : "last step"} {ago(run.updatedAt, now.value)}
            {now.value - run.updatedAt >= 1500 && " ago"}
          </span>
        </span>
        {shown && (
          <span class="tabular">
            {shown === nll ? lossName(run.kind) : "reward"} {figure(numberOf(shown.first))} →{" "}
            <strong>{figure(numberOf(shown.last))}</strong>
          </span>
        )}
        <Spark
          values={run.curve}
          colour={colourOf(run.id)}
          label="loss curve"
          width={140}
          height={30}
        />
      </div>
      <div class="row">
        <a class="button main" href={link("playground", { run: run.id })}>
          Chat with base and trained model
        </a>
        <a
          class="button"
          href={link(`runs/${id}`, { tab: run.kind === "rl" ? "rollouts" : "data" })}
        >
          View training data
        </a>
        <OwnRun />
      </div>
    </section>
  );
}
