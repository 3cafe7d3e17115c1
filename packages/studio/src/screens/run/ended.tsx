import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { hello } from "../../data/login.js";
import { Command } from "../../parts/command.js";
import { Name, Words } from "../../parts/words.js";
import { count } from "../../text/numbers.js";

/** The end of a run: the server's reason, the step, the last checkpoint, how to resume. */
export function Ended({ run }: { readonly run: StudioRunDetail }) {
  const last = run.checkpoints.findLast(({ kind }) => kind === "training");
  // Most runs end when their client exits; that is not worth a notice.
  if (run.status === "stopped" && !last) {
    return run.statusReason ? (
      <p class="muted small">
        ended: <Words>{run.statusReason}</Words>
      </p>
    ) : null;
  }
  return (
    <section
      class={`notice ${run.status === "failed" ? "error" : ""} failed-run`}
      aria-label="Reason for the end"
    >
      <div class="stack grow">
        <p>
          <strong>
            {run.status === "failed" ? "Failed" : "Stopped"} at step {count(run.step)}.
          </strong>{" "}
          {run.statusReason && <Words>{run.statusReason}</Words>}
        </p>
        <p class="small">
          {last ? (
            <>
              Last checkpoint to resume from: <Name>{last.name}</Name>
              {last.step !== null && ` (step ${count(last.step)})`}.
            </>
          ) : (
            "There is no checkpoint to resume from."
          )}
        </p>
        {last && (
          <details>
            <summary>How to resume</summary>
            <ResumeLines run={run} />
          </details>
        )}
      </div>
    </section>
  );
}

/** Code that resumes from the last checkpoint. */
export function ResumeLines({ run }: { readonly run: StudioRunDetail }) {
  const last = run.checkpoints.findLast(({ kind }) => kind === "training");
  if (!last) return <p>There is no checkpoint with an optimizer to resume from.</p>;
  const path = JSON.stringify(last.path);
  return (
    <div class="stack resume-lines">
      <h2>TypeScript</h2>
      <Command>{`const training = await service.createTrainingClientFromStateWithOptimizer(${path});`}</Command>
      <h2>Python</h2>
      <Command>{`training = service.create_training_client_from_state_with_optimizer(${path})`}</Command>
      <h2>Inspect</h2>
      <Command>{`npx tinker-ts checkpoint info ${last.path} --base-url ${hello.value?.address ?? location.origin}`}</Command>
    </div>
  );
}
