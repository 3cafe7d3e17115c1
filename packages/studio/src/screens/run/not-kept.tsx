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
          keeps eight of each step, <code>all</code> keeps everything.
        </p>
      )}
      {capture !== "off" && kind === "rollout" && (
        <p>
          Rollouts come from a logger: <code>run.logRollouts(step, groups)</code> of{" "}
          <code>tinker-ts/run-log</code>. What the trainer was given is under{" "}
          <a href={`?tab=data`}>Data</a>.
        </p>
      )}
      {capture !== "off" && kind === "sample" && (
        <p>
          Answers of the <a href={link("playground", { run: run.id })}>playground</a> are kept here.
        </p>
      )}
      {capture !== "off" && kind === "datum" && run.step === 0 && (
        <p>The first step brings some.</p>
      )}
      {capture !== "off" && kind === "datum" && run.step > 0 && (
        <p>
          They come with training passes while the server records; the oldest go first when room is
          needed.
        </p>
      )}
    </div>
  );
}
