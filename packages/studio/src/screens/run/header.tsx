import { useState } from "preact/hooks";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { now } from "../../data/clock.js";
import { colourOf } from "../../data/colours.js";
import { connection } from "../../data/events.js";
import { useKeys } from "../../data/keys.js";
import { link } from "../../data/location.js";
import { label } from "../../data/runs.js";
import { Confirm, Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { LabelDialog } from "../../parts/label-dialog.js";
import { Status } from "../../parts/status.js";
import { attempt, say } from "../../parts/toast.js";
import { Name } from "../../parts/words.js";
import { count, short } from "../../text/numbers.js";
import { ago, span } from "../../text/times.js";
import { visible } from "../../text/visible.js";
import { Ended, ResumeLines } from "./ended.js";

/** The name of a run, its status and its actions. */
export function RunHeader({
  run,
  reload,
}: {
  readonly run: StudioRunDetail;
  readonly reload: () => void;
}) {
  const [dialog, setDialog] = useState<"name" | "tags" | "stop" | "resume" | null>(null);
  const pin = (): void =>
    void attempt(() => label(run.id, { isPinned: !run.isPinned })).then(reload);
  useKeys([{ keys: "p", does: "pin the run", run: pin }]);
  return (
    <header class="stack run-header">
      <div class="row">
        <span class="swatch" style={{ background: colourOf(run.id) }} />
        <h1 class="cut">
          <Name>{run.name}</Name>
        </h1>
        <button
          type="button"
          class="button plain"
          aria-label="Rename"
          title="Rename"
          onClick={() => setDialog("name")}
        >
          ✎
        </button>
        <button
          type="button"
          class="button plain square"
          aria-label={run.isPinned ? "Unpin" : "Pin"}
          aria-pressed={run.isPinned}
          onClick={pin}
        >
          <Icon name="pin" size={15} />
        </button>
        <Status status={run.status} reason={run.statusReason} progress={run.progress} />
        <span class="grow" />
        <Steering run={run} stop={() => setDialog("stop")} reload={reload} />
      </div>
      <div class="row muted small">
        {run.baseModel && <Name>{run.baseModel}</Name>}
        {run.rank !== null && <span>rank {run.rank}</span>}
        <span class="tabular">
          step {count(run.step)}
          <TimeLeft run={run} />
        </span>
        {run.tokensPerSecond !== null && (
          <span class="tabular">{short(run.tokensPerSecond)} tokens/s</span>
        )}
        <span class="tabular">changed {ago(run.updatedAt, now.value)}</span>
        {run.attempt > 1 && <span>attempt {run.attempt}</span>}
        {run.parent && (
          <span>
            from <Name>{run.parent}</Name>
          </span>
        )}
        {run.dropped > 0 && (
          <span class="warn">{count(run.dropped)} records dropped by its logger</span>
        )}
        {run.tags.map((tag) => (
          <span key={tag} class="tag">
            <Name>{tag}</Name>
          </span>
        ))}
        <button type="button" class="button plain" onClick={() => setDialog("tags")}>
          {run.tags.length > 0 ? "change tags" : "add tags"}
        </button>
        <a href={link("compare", { runs: run.id })}>compare</a>
        <a href={link("playground", { run: run.id })}>chat</a>
      </div>
      {run.controls.stop && run.status === "running" && (
        <p class="notice warning">
          Stop requested: the loop saves and stops when it reads its controls after this step.
        </p>
      )}
      {(run.status === "failed" || run.status === "stopped") && <Ended run={run} />}
      {(dialog === "name" || dialog === "tags") && (
        <LabelDialog what={dialog} runs={[run]} close={() => setDialog(null)} done={reload} />
      )}
      {dialog === "stop" && (
        <StopDialog
          run={run}
          close={() => setDialog(null)}
          resume={() => setDialog("resume")}
          reload={reload}
        />
      )}
      {dialog === "resume" && (
        <Dialog title="Resume from here" close={() => setDialog(null)}>
          <ResumeLines run={run} />
        </Dialog>
      )}
    </header>
  );
}

function TimeLeft({ run }: { readonly run: StudioRunDetail }) {
  const { progress } = run;
  if (progress === null || progress <= 0 || progress >= 1 || run.status !== "running") return null;
  const left = ((run.updatedAt - run.createdAt) / progress) * (1 - progress);
  return (
    <>
      {" "}
      / ~{count(run.step / progress)} · {span(left)} left
    </>
  );
}

function Steering({
  run,
  stop,
  reload,
}: {
  readonly run: StudioRunDetail;
  readonly stop: () => void;
  readonly reload: () => void;
}) {
  const isAway = connection.value.state === "waiting";
  const isOpen = run.models.length > 0 && ["running", "paused", "idle"].includes(run.status);
  if (!isOpen) return null;
  const ask = (name: "pause" | "resume", done: string): void =>
    void attempt(() => call(name, { params: { id: run.id } }), done).then(reload);
  return (
    <span class="row">
      {run.isPaused ? (
        <button
          type="button"
          class="button main"
          disabled={isAway}
          onClick={() => ask("resume", "Resumed.")}
        >
          ▸ Resume
        </button>
      ) : (
        <button
          type="button"
          class="button"
          disabled={isAway}
          onClick={() => ask("pause", "Pausing after the running request. The client waits.")}
        >
          ‖ Pause
        </button>
      )}
      <button
        type="button"
        class="button"
        disabled={isAway}
        onClick={() => {
          say("Saving between two operations …");
          void attempt(async () => {
            const { path } = await call<{ path: string }>("save", {
              params: { id: run.id },
              body: {},
            });
            say(`Saved ${path}`);
          }).then(reload);
        }}
      >
        Save now
      </button>
      <button type="button" class="button danger" disabled={isAway} onClick={stop}>
        ■ Stop…
      </button>
    </span>
  );
}

function StopDialog({
  run,
  close,
  resume,
  reload,
}: {
  readonly run: StudioRunDetail;
  readonly close: () => void;
  readonly resume: () => void;
  readonly reload: () => void;
}) {
  const [isNow, setNow] = useState(false);
  const stop = async (how: "save" | "now"): Promise<void> => {
    await attempt(() => call("stop", { params: { id: run.id }, body: { how } }));
    reload();
  };
  if (isNow) {
    return (
      <Confirm
        title="Stop without saving?"
        action="Stop without saving"
        run={() => stop("now").then(resume)}
        close={close}
      >
        <p>
          The model is unloaded. Training since the last checkpoint is lost, and the loop gets an
          error with the reason.
        </p>
      </Confirm>
    );
  }
  return (
    <Dialog title={`Stop ${visible(run.name)}?`} close={close}>
      {run.hasControls ? (
        <>
          <p>
            The loop is asked to stop after this step and to save. The run then counts as completed.
          </p>
          <div class="row">
            <button type="button" class="button main" onClick={() => void stop("save").then(close)}>
              Stop and save
            </button>
            <button type="button" class="button danger" onClick={() => setNow(true)}>
              Stop without saving…
            </button>
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
          </div>
        </>
      ) : (
        <>
          <p>
            This loop does not read the <code>controls</code> of <code>RunLog</code>, so it can only
            be stopped without saving. Use “Save now” first to keep its weights.
          </p>
          <div class="row">
            <button type="button" class="button danger" onClick={() => setNow(true)}>
              Stop without saving…
            </button>
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
