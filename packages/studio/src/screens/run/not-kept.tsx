import type { StudioExhibitKind, StudioRunDetail } from "tinker-ts/wire/studio";
import { link } from "../../data/location.js";
import { hello } from "../../data/login.js";

/** The reason for an empty tab. */
export function NotKept({
  run,
  kind,
}: {
  readonly run: StudioRunDetail;
  readonly kind: StudioExhibitKind;
}) {
  const capture = hello.value?.capture;
  const what = { rollout: "rollouts", datum: "examples", sample: "samples" }[kind];
  return (
    <div class="card padded stack muted">
      <p>No {what} of this run are kept.</p>
      {capture === "off" && (
        <p>
          This server was started with <code>--capture off</code>; <code>--capture sample</code>{" "}
          stores eight of each step, <code>all</code> stores everything.
        </p>
      )}
      {capture !== "off" && kind === "rollout" && (
        <p>
          Rollouts come from a logger: <code>run.logRollouts(step, groups)</code> of{" "}
          <code>tinker-ts/run-log</code>. The trainer's input is under{" "}
          <a href={`?tab=data`}>Data</a>.
        </p>
      )}
      {capture !== "off" && kind === "sample" && (
        <p>
          Answers of the <a href={link("playground", { run: run.id })}>playground</a> are stored
          here.
        </p>
      )}
      {capture !== "off" && kind === "datum" && run.step === 0 && (
        <p>They appear with the first step.</p>
      )}
      {capture !== "off" && kind === "datum" && run.step > 0 && (
        <p>
          They are recorded with training passes; the oldest are removed first when space is needed.
        </p>
      )}
    </div>
  );
}
