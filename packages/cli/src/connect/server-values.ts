import type { CommandContext } from "../command.js";
import { Output } from "../output/output.js";
import type { ValueKind } from "../parse/option-spec.js";
import { chooseTarget } from "./target.js";
import { withService, type OpenService } from "./with-service.js";

/** Completion must not delay typing. */
const timeoutMs = 1500;
const mostItems = 200;

interface ServerValue {
  readonly text: string;
  readonly description: string;
}

/** Names of the server's models, runs and checkpoints, newest first; none when it does not answer in time. */
export async function serverValues(
  context: CommandContext,
  kinds: readonly ValueKind[],
): Promise<readonly ServerValue[]> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<[]>((resolve) => {
    timeout.addEventListener("abort", () => resolve([]), { once: true });
  });
  const bounded: CommandContext = {
    ...context,
    output: new Output(context.terminal, { format: "table", json: false, quiet: true }),
    signal: AbortSignal.any([context.signal, timeout]),
  };
  return Promise.race([read(bounded, kinds).catch(() => []), timedOut]);
}

async function read(
  context: CommandContext,
  kinds: readonly ValueKind[],
): Promise<readonly ServerValue[]> {
  if (chooseTarget(context).kind === "local") {
    // Starting the engine takes longer than a completion may.
    return kinds.includes("models")
      ? [{ text: "tinker-ts/sprout", description: "The embedded model" }]
      : [];
  }
  return withService(context, async (open) => {
    // A server without one kind of list still has the others.
    const lists = await Promise.all(kinds.map((kind) => readers[kind](open).catch(() => [])));
    return lists.flat();
  });
}

const readers: Readonly<Record<ValueKind, (open: OpenService) => Promise<readonly ServerValue[]>>> =
  {
    files: () => Promise.resolve([]),
    models: async ({ service, bounds }) => {
      const { supportedModels } = await service.getServerCapabilities(bounds);
      return supportedModels.flatMap(({ modelName }) =>
        modelName ? [{ text: modelName, description: "Base model" }] : [],
      );
    },
    runs: async ({ rest, bounds }) => {
      const { trainingRuns } = await rest.listTrainingRuns({ limit: 100, ...bounds });
      return trainingRuns.map((run) => ({ text: run.trainingRunId, description: run.baseModel }));
    },
    checkpoints: async ({ rest, bounds }) => {
      const { checkpoints } = await rest.listUserCheckpoints({ limit: mostItems, ...bounds });
      return checkpoints.map(({ tinkerPath, checkpointType }) => ({
        text: tinkerPath,
        description: `${checkpointType} checkpoint`,
      }));
    },
    sessions: async ({ rest, bounds }) => {
      const { sessions } = await rest.listSessions({ limit: mostItems, ...bounds });
      return sessions.map((text) => ({ text, description: "Session" }));
    },
  };
