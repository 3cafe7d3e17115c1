import type { Renderer } from "@tinker-ts/cookbook/renderers";
import type { RunResult } from "@tinker-ts/cookbook/runs";
import type { ServiceClient } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { answerAll, type Question } from "./samples.js";
import { oneLine } from "./texts.js";

/** Questions that a model is asked before and after it is trained. */
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

/** Tells how a run ended: answers before and after, what was found, where the weights are, what to do next. */
export async function tellTrained(
  context: CommandContext,
  { status, step, totalSteps, folder, checkpoint }: RunResult,
  interview: Interview & { readonly before: readonly string[]; readonly after: readonly string[] },
  found: Readonly<Record<string, number>>,
  more: { readonly evalFile?: string } = {},
): Promise<void> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  const { output } = context;
  const { samplerPath, statePath } = checkpoint!;
  const samples = interview.questions.map(({ asked, wanted }, index) => ({
    question: textOf(asked.at(-1)!),
    ...(wanted && { wanted: textOf(wanted) }),
    before: interview.before[index]!,
    after: interview.after[index]!,
  }));
  if (output.isJson) {
    output.json({
      status,
      step,
      total_steps: totalSteps,
      folder,
      state_path: statePath,
      sampler_path: samplerPath,
      evaluation: found,
      samples,
    });
    return;
  }
  const { bold, dim } = output.style;
  if (status === "unchanged") output.line("There was nothing left to do.");
  for (const { question, wanted, before, after } of samples) {
    const isRight = wanted !== undefined && after.trim() === wanted.trim();
    output.line(`\n${oneLine(question)}`);
    output.line(`  before: ${dim(oneLine(before))}`);
    output.line(`  now:    ${bold(oneLine(after))}${isRight ? " ✓" : ""}`);
    if (wanted !== undefined && !isRight) output.line(`  wanted: ${oneLine(wanted)}`);
  }
  const names: Readonly<Record<string, string>> = { "test/nll": "Loss on held-out data" };
  for (const [name, value] of Object.entries(found)) {
    output.line(`${names[name] ?? name}: ${value.toPrecision(4)}`);
  }
  tellWhatNext(context, { samplerPath: samplerPath!, statePath: statePath!, folder }, more);
}

/** Tells where the weights are, and what can be done with them. */
export function tellWhatNext(
  { output, globals }: CommandContext,
  paths: { readonly samplerPath: string; readonly statePath: string; readonly folder: string },
  { evalFile }: { readonly evalFile?: string } = {},
): void {
  const { samplerPath, statePath, folder } = paths;
  const where = globals.baseUrl === undefined ? "" : ` --base-url ${globals.baseUrl}`;
  output.line(`\nCheckpoint: ${samplerPath}\nRun:        ${folder}\n\nWhat next:`);
  output.line(`  tinker-ts chat --model ${samplerPath}${where}`);
  if (evalFile !== undefined) {
    output.line(`  tinker-ts eval ${evalFile} --model ${samplerPath}${where}`);
  }
  output.line(`  tinker-ts checkpoint export ${statePath} --output adapter${where}`);
}
