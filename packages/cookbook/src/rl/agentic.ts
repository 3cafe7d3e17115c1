import type { ToolEnvironmentOptions } from "./environments/tool-environment.js";
import type { TerminationPolicy } from "./rollout-group.js";
import type { RolloutLimits } from "./types.js";

/**
 * Bounds for agents that work for long: what the Python cookbook calls its agentic preset. `run` goes into the options
 * of `train`, `environment` into those of `toolGroup`.
 */
export const agentic: {
  readonly run: { readonly limits: RolloutLimits; readonly termination: TerminationPolicy };
  readonly environment: Omit<ToolEnvironmentOptions, "renderer">;
} = {
  run: {
    limits: { maxTurns: 10, maxTrajectoryTokens: 65_536 },
    termination: {
      zeroRewardOnLimit: true,
      skipsGradingOnTimeout: true,
      gradingTimeoutMs: 900_000,
    },
  },
  environment: {
    maxTurns: 10,
    maxToolCalls: 30,
    // Turns are bounded as a whole, so one that was cut off may go on.
    endsOnLength: false,
    parseErrors: { maxRetries: 2 },
    toolLimits: { isSequential: true },
  },
};
