import { thinkingState } from "@tinker-ts/hub";
import { ArgumentError, ModelInput, type SamplingClient } from "tinker-ts";
import { textOf, type Message, type Renderer } from "../renderers/index.js";
import { wantedText } from "./graders.js";
import type { EvalExample, EvalTask, Grader } from "./task.js";

/** One thing that was said, for files that people look at. */
export interface Turn {
  readonly role: string;
  readonly content: string;
  readonly tokenCount: number;
}

/** One answer and what became of it. */
export interface Attempt {
  readonly turns: readonly Turn[];
  readonly reward: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly logs: Readonly<Record<string, string | number>>;
  /** Why there is no answer. */
  readonly error?: string | undefined;
  readonly seconds: number;
}

/** What asking needs. */
export interface AskOptions {
  readonly task: EvalTask;
  readonly sampling: SamplingClient;
  readonly renderer: Renderer;
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly contextWindow?: number | undefined;
  readonly numSamples?: number | undefined;
  readonly seed?: number | undefined;
}

/** Samples answers to an example and judges them. */
export async function answerExample(
  example: EvalExample,
  index: number,
  options: AskOptions,
  grader: Grader,
  signal: AbortSignal,
): Promise<Attempt[]> {
  const { sampling, renderer, numSamples = 1, temperature = 0, seed = 0 } = options;
  const startedAt = performance.now();
  const messages = withSystem(example, options);
  const prompt = renderer.buildGenerationPrompt(messages);
  const promptEnd = endOf(renderer, prompt);
  const maxTokens = roomFor(prompt, options);
  if (maxTokens <= 0) return overflow(numSamples, prompt);
  const { sequences } = await sampling.sample({
    prompt,
    numSamples,
    samplingParams: {
      maxTokens,
      temperature,
      stop: renderer.stopSequences,
      seed: seed * 1_000_003 + index,
    },
    signal,
  });
  return Promise.all(
    sequences.map(async ({ tokens, stopReason }) => {
      const { message, termination } = renderer.parseResponse(tokens);
      const answer = { text: textOf(message).trim(), message, termination };
      const grade = await grader(answer, example, signal);
      const isCut = stopReason === "length";
      const thinks = () =>
        thinkingState(promptEnd + renderer.tokenizer.decode(tokens)) === "inside";
      return {
        turns: [...messages.map((asked) => turnOf(asked, 0)), turnOf(message, tokens.length)],
        reward: grade.reward,
        metrics: {
          ...grade.metrics,
          ...(isCut && { max_tokens_reached: 1, ...(thinks() && { thinking_cut_off: 1 }) }),
        },
        logs: grade.logs ?? {},
        seconds: (performance.now() - startedAt) / 1000,
      };
    }),
  );
}

/** Where a think block that a prompt opens would be. */
function endOf(renderer: Renderer, prompt: ModelInput): string {
  const last = prompt.chunks.at(-1);
  return last !== undefined && "tokens" in last
    ? renderer.tokenizer.decode([...last.tokens].slice(-16))
    : "";
}

/** Takes the choice that the model finds most probable, by the mean over its tokens. */
export async function chooseAnswer(
  example: EvalExample,
  options: AskOptions,
  signal: AbortSignal,
): Promise<Attempt[]> {
  const { choices = [] } = example;
  const { sampling, renderer } = options;
  if (choices.length < 2) throw new ArgumentError("choices", "an example has fewer than two");
  const startedAt = performance.now();
  const messages = withSystem(example, options);
  const prompt = [...renderer.buildGenerationPrompt(messages).toInts()];
  const scores = await Promise.all(
    choices.map(async (choice) => {
      const tokens = [...renderer.tokenizer.encode(choice, { addSpecialTokens: false })];
      const all = await sampling.computeLogprobs([...prompt, ...tokens], { signal });
      const own = all.slice(prompt.length).map((logprob) => logprob ?? 0);
      return own.reduce((sum, logprob) => sum + logprob, 0) / own.length;
    }),
  );
  const chosen = scores.indexOf(Math.max(...scores));
  const wanted = wantedChoice(example);
  const seconds = (performance.now() - startedAt) / 1000;
  return [
    {
      turns: [
        ...messages.map((asked) => turnOf(asked, 0)),
        { role: "assistant", content: choices[chosen]!, tokenCount: 0 },
      ],
      reward: chosen === wanted ? 1 : 0,
      metrics: {},
      logs: {
        wanted: choices[wanted]!,
        logprobs: scores.map((score) => score.toFixed(3)).join(" "),
      },
      seconds,
    },
  ];
}

function wantedChoice(example: EvalExample): number {
  const { answer, choices = [] } = example;
  const index = typeof answer === "number" ? answer : choices.indexOf(wantedText(example));
  if (index >= 0 && index < choices.length) return index;
  throw new ArgumentError("answer", "is neither one of the choices nor the number of one");
}

function withSystem({ messages }: EvalExample, { task }: AskOptions): readonly Message[] {
  return task.system === undefined
    ? messages
    : [{ role: "system", content: task.system }, ...messages];
}

function roomFor(prompt: ModelInput, { maxTokens = 1024, contextWindow }: AskOptions): number {
  return contextWindow === undefined
    ? maxTokens
    : Math.min(maxTokens, contextWindow - prompt.length);
}

function overflow(numSamples: number, { length }: ModelInput): Attempt[] {
  const attempt = {
    turns: [],
    reward: 0,
    metrics: { context_overflow: 1 },
    logs: { prompt_tokens: length },
    seconds: 0,
  };
  return Array.from({ length: numSamples }, () => attempt);
}

function turnOf(message: Message, tokenCount: number): Turn {
  return { role: message.role, content: textOf(message), tokenCount };
}
