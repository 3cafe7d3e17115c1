import type { CommandContext } from "../command.js";
import { Interrupted } from "../terminal/interrupted.js";

/** A run that was stopped. */
interface Stopped {
  readonly step: number;
  readonly totalSteps: number;
  readonly folder: string;
  readonly checkpoint: { readonly statePath?: string | undefined } | undefined;
}

/** Says that a run was stopped and how it goes on; the exit code says it too. */
export function tellInterruption(
  { output, signal }: CommandContext,
  { step, totalSteps, checkpoint, folder }: Stopped,
  resume: string,
): number {
  if (output.isJson) {
    output.json({
      status: "interrupted",
      step,
      total_steps: totalSteps,
      folder,
      state_path: checkpoint?.statePath,
      resume,
    });
  } else {
    output.line(
      `Stopped after step ${step} of ${totalSteps}; everything is saved. Go on with:\n  ${resume}`,
    );
  }
  return signal.reason instanceof Interrupted ? signal.reason.exitCode : 130;
}
