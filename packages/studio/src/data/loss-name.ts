import type { StudioRun } from "tinker-ts/wire/studio";

/** What the loss per token of a run is called: only that of examples is a negative log-likelihood. */
export function lossName(kind: StudioRun["kind"]): "nll" | "loss" {
  return kind === "rl" || kind === "preference" ? "loss" : "nll";
}
