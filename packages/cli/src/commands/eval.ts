import { readFile } from "node:fs/promises";
import path from "node:path";
import type { EvalExample, EvalResult, EvalTask } from "@tinker-ts/cookbook/evaluation";
import type { Conversation } from "@tinker-ts/cookbook/data";
import type { Renderer } from "@tinker-ts/cookbook/renderers";
import { thinkingModes } from "../output/thinking-modes.js";
import { defineCommand, type CommandContext } from "../command.js";
import { orLocal } from "../connect/or-local.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { CliError } from "../errors/cli-error.js";
import { dataSource } from "../parse/data-source.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../parse/option-spec.js";
import { findSource } from "../connect/model-source.js";
import { nameOf, sourceOptions } from "../parse/source-options.js";

const graders = ["exact", "includes", "numeric", "regex", "json", "choice", "judge"] as const;

const options = {
  ...sourceOptions,
  grader: {
    type: "string",
    short: "g",
    choices: graders,
    default: "exact",
    description: "Grader of answers",
  },
  pattern: {
    type: "string",
    placeholder: "REGEX",
    description: "For regex: pattern to find; a group must match the expected answer",
  },
  schema: { type: "string", placeholder: "FILE", description: "For json: a JSON Schema" },
  tolerance: {
    type: "number",
    min: 0,
    default: 1e-6,
    description: "For numeric: tolerance",
  },
  judge: {
    type: "string",
    placeholder: "NAME|PATH",
    values: ["models", "checkpoints", "files"],
    description: "For judge: judging model",
  },
  ignoreCase: { type: "flag", description: "For exact: ignore case" },
  system: { type: "string", description: "System message of every question" },
  renderer: {
    type: "string",
    placeholder: "NAME",
    description: "Chat format, if not the one that the model was trained with",
  },
  maxTokens: { type: "integer", min: 1, default: 256, description: "Maximum tokens of an answer" },
  temperature: {
    type: "number",
    min: 0,
    default: 0,
    description: "Sampling temperature; 0 takes the most probable token",
  },
  numSamples: {
    type: "integer",
    short: "n",
    min: 1,
    default: 1,
    description: "Answers per question, for pass@k",
  },
  maxExamples: { type: "integer", min: 1, description: "Maximum number of questions" },
  concurrency: {
    type: "integer",
    min: 1,
    default: 64,
    description: "Maximum questions in flight",
  },
  seed: { type: "integer", default: 0, description: "Random seed for sampling" },
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    description: "Folder for answers; answered questions are not asked again",
  },
} as const satisfies OptionSpecs;

const args = {
  data: { description: "File of conversations with the expected answer as the last message" },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;

/** `eval` */
export const command = defineCommand({
  summary: "Evaluate a model on the questions of a file.",
  details: [
    "The last message of a conversation is the expected answer. With --grader choice, rows have choices and an answer.",
    "With --output, the same command resumes an interrupted evaluation and repeats failed questions.",
  ],
  options,
  arguments: args,
  examples: [
    "eval held-out.jsonl --model tinker-ts/sprout",
    "eval held-out.jsonl --model tinker://RUN_ID/sampler_weights/NAME --output evals/first",
    "eval maths.jsonl --model tinker-ts/sprout --grader numeric --num-samples 8 --temperature 1",
  ],
  async run(given, { arguments: { data }, options: chosen }) {
    const context = orLocal(given);
    const source = await findSource(chosen, context.terminal.cwd);
    const { cwd } = context.terminal;
    const examples = await readExamples(dataSource(data, cwd));
    await withService(context, async (open) => {
      const { evaluate } = await import("@tinker-ts/cookbook/evaluation");
      const model = await openModel(context, open, source, chosen.renderer);
      const task: EvalTask = {
        name: path.parse(data).name,
        examples,
        grader: await makeGrader(context, open, chosen),
        system: chosen.system,
      };
      const progress = context.output.progress("Asking");
      try {
        const { maxExamples, concurrency, maxTokens, temperature, numSamples, seed } = chosen;
        const result = await evaluate({
          maxExamples,
          concurrency,
          maxTokens,
          temperature,
          numSamples,
          seed,
          ...model,
          task,
          folder: chosen.output === undefined ? undefined : path.resolve(cwd, chosen.output),
          signal: context.signal,
          onProgress: ({ done, total, correct }) =>
            progress.update(done, total, `${correct} right`),
        });
        progress.end();
        await printResult(context, nameOf(source), result, task, model.renderer);
      } finally {
        progress.end();
      }
    });
  },
});

async function readExamples(file: string): Promise<readonly EvalExample[]> {
  const { loadConversations, toConversation, DataError } = await import("@tinker-ts/cookbook/data");
  const examples: EvalExample[] = [];
  const read = (row: Readonly<Record<string, unknown>>): Conversation => {
    const { choices, answer, question, id } = row;
    const isChoice = Array.isArray(choices);
    const conversation =
      isChoice && typeof question === "string"
        ? { messages: [{ role: "user", content: question }] }
        : toConversation(row);
    const last = conversation.messages.at(-1)!;
    const hasAnswer = last.role === "assistant";
    if (!hasAnswer && answer === undefined) throw new DataError("no answer at the end");
    examples.push({
      ...(typeof id === "string" && { id }),
      messages: hasAnswer ? conversation.messages.slice(0, -1) : conversation.messages,
      answer: isChoice ? answer : hasAnswer ? last.content : answer,
      ...(isChoice && { choices: choices.map(String) }),
    });
    return conversation;
  };
  await loadConversations(file, { map: read });
  return examples;
}

async function openModel(
  { output, signal }: CommandContext,
  { service }: OpenService,
  source: { readonly baseModel: string } | { readonly modelPath: string },
  renderer: string | undefined,
) {
  const { chooseRenderer } = await import("@tinker-ts/cookbook/runs");
  const sampling = await service.createSamplingClient({ ...source, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const model = await sampling.getBaseModel({ signal });
  const checkpointPath = "modelPath" in source ? source.modelPath : undefined;
  const onWarning = (text: string): void => output.note(`Warning: ${text}`);
  const chosen = { renderer, model, tokenizer, checkpointPath, service, signal, onWarning };
  return { sampling, renderer: await chooseRenderer(chosen) };
}

async function makeGrader(
  context: CommandContext,
  open: OpenService,
  chosen: Options,
): Promise<EvalTask["grader"]> {
  const kinds = await import("@tinker-ts/cookbook/evaluation");
  switch (chosen.grader) {
    case "exact":
      return kinds.exactMatch({ ignoreCase: chosen.ignoreCase });
    case "includes":
      return kinds.includesMatch();
    case "numeric":
      return kinds.numericMatch({ tolerance: chosen.tolerance });
    case "regex":
      return kinds.regexMatch(chosen.pattern);
    case "json": {
      if (chosen.schema === undefined) throw new CliError("--grader json needs --schema FILE.");
      const file = path.resolve(context.terminal.cwd, chosen.schema);
      return kinds.jsonSchemaMatch(JSON.parse(await readFile(file, "utf8")) as object);
    }
    case "judge": {
      if (chosen.judge === undefined) throw new CliError("--grader judge needs --judge MODEL.");
      const judge = { model: chosen.judge, baseModel: undefined, modelPath: undefined };
      const source = await findSource(judge, context.terminal.cwd);
      return kinds.modelJudge(await openModel(context, open, source, undefined));
    }
    default:
      return chosen.grader;
  }
}

/** The name of a renderer, and whether its prompts have the model think. */
async function describeRenderer(renderer: Renderer): Promise<string> {
  const { thinkingState } = await import("@tinker-ts/hub");
  const prompt = renderer.buildGenerationPrompt([{ role: "user", content: "Hi" }]);
  const mode = thinkingModes[thinkingState(renderer.tokenizer.decode(prompt.toInts()))];
  return mode === null ? renderer.name : `${renderer.name}: ${mode}`;
}

async function printResult(
  { output }: CommandContext,
  model: string,
  result: EvalResult,
  task: EvalTask,
  renderer: Renderer,
): Promise<void> {
  const { isRight, toResultLine } = await import("@tinker-ts/cookbook/evaluation");
  const described = await describeRenderer(renderer);
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const [low, high] = result.interval;
  output.result({
    json: () => ({ model, ...toResultLine(result) }),
    table: () => ({
      title: `Evaluation of ${model}`,
      headers: ["Property", "Value"],
      rows: [
        ["Task", result.name],
        ["Renderer", described],
        ["Score", `${percent(result.score)} (95 %: ${percent(low)} to ${percent(high)})`],
        ["Right", `${result.numCorrect} of ${result.attempts.flat().length}`],
        ["Cut off", String(result.numTruncated)],
        ["Failed", String(result.numErrors)],
        ...[...result.passAtK].map(([k, share]) => [`pass@${k}`, percent(share)]),
        ...Object.entries(result.metrics).map(([name, value]) => [name, value.toPrecision(4)]),
        ["Seconds", result.seconds.toFixed(1)],
      ],
    }),
  });
  if (output.isJson) return;
  if (result.numThinkingCutOff > 0) {
    output.note(
      `\n${result.numThinkingCutOff} answers are empty: the model thought until --max-tokens ended it. Raise it, or take ` +
        "a renderer without thinking.",
    );
  }
  const error = result.attempts.flat().find((attempt) => attempt.error !== undefined)?.error;
  if (error !== undefined)
    output.note(`\nWarning: ${result.numErrors} failed, the first with: ${error}`);
  const wrong = result.attempts.findIndex(
    (made) => !made.some(isRight) && made[0]?.error === undefined,
  );
  if (wrong === -1) return;
  const [attempt] = result.attempts[wrong]!;
  const said = attempt?.turns.at(-1)?.content ?? "";
  const wanted = task.examples[wrong]!.answer;
  output.note(`\nFirst wrong answer: ${JSON.stringify(said)}; expected ${JSON.stringify(wanted)}`);
}
