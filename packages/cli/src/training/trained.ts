import type { Message, Renderer } from "@tinker-ts/cookbook/renderers";
import type { RunResult } from "@tinker-ts/cookbook/runs";
import type { ServiceClient } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { answerAll } from "./samples.js";
import { oneLine } from "./texts.js";

/** Questions that a model is asked before and after it is trained. */
export interface Interview {
  readonly renderer: Renderer;
  readonly questions: readonly (readonly Message[])[];
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
  const asked = questions.map((question) => ({ asked: question }));
  return (await answerAll(sampling, renderer, asked, signal)).map(textOf);
}

/** Tells how a run ended: answers before and after, what was found, where the weights are, what to do next. */
export async function tellTrained(
  { output, globals }: CommandContext,
  { status, step, totalSteps, folder, checkpoint }: RunResult,
  interview: Interview & { readonly before: readonly string[]; readonly after: readonly string[] },
  found: Readonly<Record<string, number>>,
): Promise<void> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  const { samplerPath, statePath } = checkpoint!;
  const samples = interview.questions.map((question, index) => ({
    question: textOf(question.at(-1)!),
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
  for (const { question, before, after } of samples) {
    output.line(`\n${oneLine(question)}`);
    output.line(`  before: ${dim(oneLine(before))}`);
    output.line(`  now:    ${bold(oneLine(after))}`);
  }
  for (const [name, value] of Object.entries(found)) {
    output.line(`${name}: ${value.toPrecision(4)}`);
  }
  const where = globals.baseUrl === undefined ? "" : ` --base-url ${globals.baseUrl}`;
  output.line(`\nCheckpoint: ${samplerPath}\nRun:        ${folder}\n\nWhat next:`);
  output.line(`  tinker-ts chat --model ${samplerPath}${where}`);
  output.line(`  tinker-ts checkpoint export ${statePath} --output adapter${where}`);
}
