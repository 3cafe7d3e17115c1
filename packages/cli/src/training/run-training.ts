import path from "node:path";
import type { RunOptions, RunResult } from "@tinker-ts/cookbook/runs";
import type { RunSink } from "tinker-ts/run-log";
import type { CommandContext } from "../command.js";
import { checkBaseModel } from "../connect/model-source.js";
import { CliError } from "../errors/cli-error.js";
import { flagOf, type OptionSpecs } from "../parse/option-spec.js";
import { programCall } from "../terminal/program-call.js";
import { Interrupted } from "../terminal/interrupted.js";
import { liveSink } from "./live-sink.js";
import { snakeCase } from "./texts.js";

/** The options that decide on the folder of a run. */
interface FolderChoice {
  readonly output?: string | undefined;
  readonly resume: boolean;
  readonly ifExists?: "fail" | "resume" | "delete" | "new" | undefined;
  readonly dryRun: boolean;
}

/** The folder of a run, chosen by `--output` or by the name of its data, and the answer to one that holds a run. */
export async function openRunFolder(
  cwd: string,
  source: string,
  chosen: FolderChoice & { readonly model: string },
): Promise<Required<Pick<RunOptions, "folder" | "ifExists">>> {
  await checkBaseModel(chosen.model, cwd);
  const { output, resume, ifExists = resume ? "resume" : "fail", dryRun } = chosen;
  if (resume && ifExists !== "resume") {
    throw new CliError(`--resume and --if-exists ${ifExists} exclude each other.`);
  }
  const name = path.parse(source).name.replaceAll(":", "-");
  const folder = path.resolve(cwd, output ?? path.join("runs", name));
  const { inRunFolder } = await import("@tinker-ts/cookbook/runs");
  if (ifExists === "new") return { ...(await inRunFolder({ folder, ifExists })), ifExists: "fail" };
  if (ifExists !== "fail" || dryRun) return { folder, ifExists };
  const { readRunFolder } = await import("tinker-ts/run-log");
  const { attempts } = await readRunFolder(folder);
  if (attempts === 0) return { folder, ifExists };
  throw new CliError(
    `${folder} holds a run already.`,
    "Resume it with --resume, start over with --if-exists delete, keep both with --if-exists new, or choose another\n" +
      "folder with --output.",
  );
}

/** A training command after its inputs are read. */
export interface Training<R extends RunResult> {
  /** The words and arguments of the command. */
  readonly words: readonly string[];
  readonly specs: OptionSpecs;
  readonly chosen: Readonly<Record<string, unknown>> & FolderChoice;
  readonly folder: string;
  /** What will be trained, for JSON. */
  readonly plan: { readonly model: string; readonly learningRate: number };
  readonly totalSteps: number;
  /** Metrics to show during training, the most important first. */
  readonly metrics: readonly (string | RegExp)[];
  /** Problems of the inputs; a run that begins has them among its own warnings. */
  readonly warnings?: readonly string[] | undefined;
  /** Prints what will be trained. */
  showPlan(): Promise<void> | void;
  train(sinks: readonly RunSink[]): Promise<R>;
  /** Prints the result of a run that ended. */
  report(result: R): Promise<void>;
}

/** Shows a plan, trains unless it is a dry run, and reports how the run ended. */
export async function runTraining<R extends RunResult>(
  context: CommandContext,
  training: Training<R>,
): Promise<number | void> {
  const { output } = context;
  if (!output.isJson) await training.showPlan();
  if (training.chosen.dryRun) {
    const { learningRateWarning } = await import("@tinker-ts/cookbook/runs");
    const { model, learningRate } = training.plan;
    const warnings = [learningRateWarning(model, learningRate) ?? [], training.warnings ?? []];
    for (const warning of warnings.flat()) output.note(`Warning: ${warning}`);
    if (output.isJson) output.json(snakeCase(training.plan));
    return undefined;
  }
  const { consoleSink } = await import("tinker-ts/run-log");
  const { totalSteps, metrics } = training;
  const result = await training.train(liveSink(context, consoleSink, totalSteps, metrics));
  if (result.status === "interrupted") return printInterruption(context, result, training);
  await training.report(result);
  return undefined;
}

/** Reports that a run was interrupted and how to resume it. */
function printInterruption<R extends RunResult>(
  { output, signal, terminal }: CommandContext,
  { step, totalSteps, checkpoint, folder, warnings }: RunResult,
  { words, specs, chosen, folder: own }: Training<R>,
): number {
  const options = {
    ...chosen,
    output: chosen.output ?? path.relative(terminal.cwd, own),
    resume: false,
    ifExists: undefined,
  };
  if (chosen.ifExists === "new") options.output = path.relative(terminal.cwd, own);
  const resume = `${commandLine([programCall(terminal.env), ...words], specs, options)} --resume`;
  if (output.isJson) {
    output.json({
      status: "interrupted",
      step,
      total_steps: totalSteps,
      folder,
      state_path: checkpoint?.statePath,
      warnings,
      resume,
    });
  } else {
    output.line(
      `Stopped after step ${step} of ${totalSteps}; everything is saved. Resume with:\n  ${resume}`,
    );
  }
  return signal.reason instanceof Interrupted ? signal.reason.exitCode : 130;
}

/** A command line with these options, without those at their defaults. */
function commandLine(
  [program, ...words]: readonly string[],
  specs: OptionSpecs,
  values: Readonly<Record<string, unknown>>,
): string {
  const flags = Object.entries(specs).flatMap(([name, spec]) => {
    const value = values[name];
    if (value === undefined || value === false || value === spec.default) return [];
    if (spec.type === "flag") return [flagOf(name)];
    const list = Array.isArray(value) ? value : [value];
    return list.flatMap((entry) => [flagOf(name), String(entry)]);
  });
  return [program, ...[...words, ...flags].map(quote)].join(" ");
}

function quote(word: string): string {
  return /^[\w./:@=+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
