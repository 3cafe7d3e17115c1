import type { Renderer } from "@tinker-ts/cookbook/renderers";
import type { RunResult } from "@tinker-ts/cookbook/runs";
import type { ServiceClient } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { programCall } from "../terminal/program-call.js";
import { answerAll, type Question } from "./samples.js";
import { oneLine } from "./texts.js";

/** Questions to ask a model before and after training. */
export interface Interview {
  readonly renderer: Renderer;
  readonly questions: readonly Question[];
}

/** The most probable answers of the base model, or of a checkpoint. */
export async function askAll(
  service: ServiceClient,
  { renderer, questions }: Interview,
  source: { readonly baseModel: string } | { readonly modelPath: string },
  signal: AbortSignal,
): Promise<string[]> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  const sampling = await service.createSamplingClient({ ...source, signal });
  return (await answerAll(sampling, renderer, questions, signal)).map(textOf);
}

/** Prints the result of a run: answers before and after, metrics, warnings, the checkpoint and the next steps. */
export async function printSummary(
  context: CommandContext,
  result: RunResult,
  interview: Interview & { readonly before: readonly string[]; readonly after: readonly string[] },
  metrics: Readonly<Record<string, number>>,
  more: { readonly evalFile?: string } = {},
): Promise<void> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  const { output } = context;
  const samples = interview.questions.map(({ asked, wanted }, index) => ({
    question: textOf(asked.at(-1)!),
    ...(wanted && { wanted: textOf(wanted) }),
    before: interview.before[index]!,
    after: interview.after[index]!,
  }));
  if (output.isJson) {
    output.json({ ...resultJson(result), evaluation: metrics, samples });
    return;
  }
  const { bold, dim } = output.style;
  for (const { question, wanted, before, after } of samples) {
    const isRight = wanted !== undefined && after.trim() === wanted.trim();
    output.line(`\n${oneLine(question)}`);
    output.line(`  before: ${dim(oneLine(before))}`);
    output.line(`  now:    ${bold(oneLine(after))}${isRight ? " ✓" : ""}`);
    if (wanted !== undefined && !isRight) output.line(`  wanted: ${oneLine(wanted)}`);
  }
  const names: Readonly<Record<string, string>> = { "test/nll": "Loss on held-out data" };
  for (const [name, value] of Object.entries(metrics)) {
    output.line(`${names[name] ?? name}: ${value.toPrecision(4)}`);
  }
  printEnd(context, result, more);
}

/** The result of a run as JSON. */
export function resultJson(result: RunResult): Record<string, unknown> {
  const { status, step, totalSteps, folder, checkpoint, warnings, notCompared } = result;
  return {
    status,
    step,
    total_steps: totalSteps,
    folder,
    state_path: checkpoint!.statePath,
    sampler_path: checkpoint!.samplerPath,
    warnings,
    not_compared: notCompared,
  };
}

/** Prints the status and the warnings of a run, its checkpoint, and commands for the next steps. */
export function printEnd(
  { output, globals, terminal }: CommandContext,
  { status, folder, checkpoint, warnings, notCompared }: RunResult,
  { evalFile }: { readonly evalFile?: string } = {},
): void {
  const { samplerPath, statePath } = checkpoint!;
  if (status === "unchanged") {
    const inputs =
      notCompared.length > 0 ? `; not compared with it: ${notCompared.join(", ")}` : "";
    output.line(
      `\nNothing was trained: the run had already ended, and this is its model${inputs}.`,
    );
  }
  for (const [index, warning] of warnings.entries()) {
    output.line(`${index === 0 ? "\n" : ""}${output.style.bold("Warning:")} ${warning}`);
  }
  const where = globals.baseUrl === undefined ? "" : ` --base-url ${globals.baseUrl}`;
  const program = programCall(terminal.env);
  output.line(`\nCheckpoint: ${samplerPath}\nRun:        ${folder}\n\nWhat next:`);
  output.line(`  ${program} chat --model ${samplerPath}${where}`);
  if (evalFile !== undefined) {
    output.line(`  ${program} eval ${evalFile} --model ${samplerPath}${where}`);
  }
  output.line(`  ${program} checkpoint export ${statePath} --output adapter${where}`);
}
