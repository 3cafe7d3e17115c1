import type { StudioStatus } from "tinker-ts/wire/studio";
import { visible } from "../text/visible.js";

const signs: Readonly<Record<StudioStatus, string>> = {
  running: "●",
  paused: "‖",
  idle: "○",
  completed: "✓",
  failed: "✕",
  stopped: "■",
  unloaded: "◌",
};

const words: Readonly<Record<StudioStatus, string>> = {
  running: "running",
  paused: "paused",
  idle: "idle",
  completed: "done",
  failed: "failed",
  stopped: "stopped",
  unloaded: "ended",
};

/** The status of a run: icon, word and progress. */
export function Status({
  status,
  reason = null,
  progress = null,
}: {
  readonly status: StudioStatus;
  readonly reason?: string | null;
  readonly progress?: number | null;
}) {
  return (
    <span class={`status ${status}`} title={reason ? visible(reason) : undefined}>
      <span class="sign" aria-hidden="true">
        {signs[status]}
      </span>
      {words[status]}
      {progress !== null && status === "running" && (
        <span class="tabular muted">{Math.floor(progress * 100)} %</span>
      )}
    </span>
  );
}
