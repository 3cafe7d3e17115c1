import { defineCommand, type CommandContext } from "../../command.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { describeError } from "../../output/describe-error.js";
import { formatRelative, formatSize } from "../../output/formats.js";
import { parseCheckpointPath } from "../../parse/checkpoint-path.js";
import { readDate } from "../../parse/read-date.js";
import type { Terminal } from "../../terminal/terminal.js";
import { printable } from "../../terminal/text-width.js";
import { createInterface } from "node:readline";
import type { Checkpoint } from "tinker-ts";

interface Failure {
  readonly path: string;
  readonly error: string;
}

/** How the checkpoints of a run are picked. */
interface Filter {
  readonly type: "training" | "sampler" | undefined;
  readonly before: Date | undefined;
  readonly after: Date | undefined;
}

const atOnce = 32;
const types: Readonly<Record<string, Filter["type"]>> = {
  weights: "training",
  training: "training",
  sampler_weights: "sampler",
  sampler: "sampler",
};

/** `checkpoint delete` */
export const command = defineCommand({
  summary: "Delete checkpoints by path, or those of a run by filters.",
  details: ["Asks first unless --yes is given. What was deleted cannot be brought back."],
  options: {
    runId: {
      type: "string",
      placeholder: "RUN_ID",
      values: ["runs"],
      description: "All checkpoints of this run",
    },
    type: {
      type: "string",
      description: "Type: weights (or training), or sampler_weights (or sampler); with --run-id",
    },
    before: { type: "string", placeholder: "DATE", description: "Older than DATE; with --run-id" },
    after: { type: "string", placeholder: "DATE", description: "Newer than DATE; with --run-id" },
    yes: { type: "flag", short: "y", description: "Do not ask" },
  },
  arguments: {
    paths: {
      values: ["checkpoints"],
      description: "tinker://RUN_ID/weights/NAME",
      optional: true,
      multiple: true,
    },
  },
  examples: [
    "checkpoint delete tinker://RUN_ID/weights/NAME",
    "checkpoint delete --run-id RUN_ID --type sampler --before 2026-01-31 --yes",
  ],
  async run(context, { arguments: { paths }, options }) {
    const filter = checkArguments(paths, options);
    const { runId } = options;
    await withService(context, async (open) => {
      const chosen = runId === undefined ? paths : await chooseByRun(context, open, runId, filter);
      if (chosen === undefined) return;
      if (!options.yes && !(await asksUser(context, runId === undefined ? chosen : [], chosen))) {
        context.output.note("Cancelled.");
        return;
      }
      printResult(context, chosen.length, await deleteAll(context, open, chosen));
    });
  },
});

function checkArguments(
  paths: readonly string[],
  options: {
    readonly runId: string | undefined;
    readonly type: string | undefined;
    readonly before: string | undefined;
    readonly after: string | undefined;
  },
): Filter {
  const { runId, type, before, after } = options;
  if (paths.length === 0 && runId === undefined) {
    throw new CliError("Nothing to delete.", "Name checkpoints, or pass --run-id RUN_ID.");
  }
  if (paths.length > 0 && runId !== undefined) {
    throw new CliError("Checkpoints and --run-id cannot be combined.", "Use one of them.");
  }
  if (runId === undefined && (type ?? before ?? after) !== undefined) {
    throw new CliError("--type, --before and --after need --run-id.");
  }
  if (type !== undefined && !Object.hasOwn(types, type)) {
    throw new CliError(`Unknown type: ${JSON.stringify(type)}`, "Use weights or sampler_weights.");
  }
  for (const path of paths) parseCheckpointPath(path);
  return {
    type: type === undefined ? undefined : types[type],
    before: before === undefined ? undefined : readDate("--before", before),
    after: after === undefined ? undefined : readDate("--after", after),
  };
}

/** The paths of a run's checkpoints that match; undefined, after saying so, when there are none. */
async function chooseByRun(
  { output }: CommandContext,
  { rest, bounds }: OpenService,
  runId: string,
  { type, before, after }: Filter,
): Promise<string[] | undefined> {
  const { checkpoints } = await rest.listCheckpoints(runId, bounds);
  const chosen = checkpoints.filter(
    (checkpoint) =>
      (type === undefined || checkpoint.checkpointType === type) &&
      (before === undefined || checkpoint.time < before) &&
      (after === undefined || checkpoint.time > after),
  );
  if (chosen.length === 0) {
    if (output.isJson) output.json({ deleted_count: 0, failed: [] }, 0);
    else output.line(`No checkpoints of run ${runId} match.`);
    return undefined;
  }
  for (const checkpoint of chosen) output.note(describe(checkpoint));
  const totalBytes = chosen.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
  output.note(`Total: ${chosen.length}, ${formatSize(totalBytes)}`);
  return chosen.map(({ tinkerPath }) => tinkerPath);
}

function describe({ tinkerPath, sizeBytes, time }: Checkpoint): string {
  return `  ${printable(tinkerPath)} (${formatSize(sizeBytes)}, ${formatRelative(time)})`;
}

function asksUser(
  { terminal, signal }: CommandContext,
  listed: readonly string[],
  chosen: readonly string[],
): Promise<boolean> {
  for (const path of listed) terminal.err(`  ${printable(path)}\n`);
  terminal.err("This cannot be undone.\n");
  const what = chosen.length === 1 ? "this checkpoint" : `these ${chosen.length} checkpoints`;
  return confirm(`Delete ${what}?`, terminal, signal);
}

async function deleteAll(
  { output, signal }: CommandContext,
  { rest, bounds }: OpenService,
  paths: readonly string[],
): Promise<Failure[]> {
  const failures: Failure[] = [];
  const progress = output.progress("Deleting");
  let done = 0;
  try {
    const { inParallel } = await import("@tinker-ts/cookbook/evaluation");
    await inParallel(paths, atOnce, async (path) => {
      signal.throwIfAborted();
      try {
        await rest.deleteCheckpointFromTinkerPath(path, bounds);
      } catch (error) {
        signal.throwIfAborted();
        const { heading, detail } = describeError(error);
        failures.push({ path, error: detail === undefined ? heading : `${heading}: ${detail}` });
      }
      progress.update(++done, paths.length);
    });
  } finally {
    progress.end();
  }
  return failures;
}

function printResult(
  { output, terminal }: CommandContext,
  count: number,
  failures: Failure[],
): void {
  const deleted = count - failures.length;
  if (output.isJson) {
    const failed = failures.map(({ path, error }) => ({ tinker_path: path, error }));
    return output.json({ deleted_count: deleted, failed }, 0);
  }
  output.line(`Deleted ${deleted} checkpoint${deleted === 1 ? "" : "s"}.`);
  for (const { path, error } of failures) terminal.err(`Failed to delete ${path}: ${error}\n`);
}

/** Asks a question that is answered with yes or no; everything but yes is no. */
async function confirm(
  question: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  terminal.err(`${question} [y/N]: `);
  const lines = createInterface({ input: terminal.input, signal });
  const answer = await new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(undefined));
  });
  lines.close();
  signal.throwIfAborted();
  if (answer === undefined) {
    terminal.err("\n");
    throw new CliError(
      "Aborted: no answer on the terminal.",
      "Pass --yes to delete without a question.",
    );
  }
  return /^y(es)?$/i.test(answer.trim());
}
