import type { StudioRun } from "tinker-ts/wire/studio";

/** The name of the loss per token of a run: only that of supervised training is a negative log-likelihood. */
export function lossName(kind: StudioRun["kind"]): "nll" | "loss" {
  return kind === "rl" || kind === "preference" ? "loss" : "nll";
}
