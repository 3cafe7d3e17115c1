import type { Evaluator } from "../evaluation/index.js";
import { asMessages, type Message, type Renderer } from "../renderers/index.js";
import {
  groupOf,
  messageEnvironment,
  type EnvironmentGroup,
  type Trajectory,
} from "../rl/index.js";
import type { PreferenceModel } from "./reward-model.js";
import { tournamentPairs, tournamentScores, type TournamentPattern } from "./tournament.js";

/** How answers to a prompt compete. */
export interface TournamentGroupOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Who judges. */
  readonly judge: PreferenceModel;
  /** Answers per prompt. @default 4 */
  readonly size?: number | undefined;
  /** Whether every pair is judged in both orders. @default "all_pairs_both_ways" */
  readonly pattern?: TournamentPattern | undefined;
  /** Answers that are compared with each other, where the group is larger. @default 4 */
  readonly matchupGroupSize?: number | undefined;
  /** What an answer without a clean end costs. @default 1 */
  readonly formatCoefficient?: number | undefined;
  /** Changes answers before they are judged, for instance by leaving reasoning out. */
  readonly preprocess?: ((message: Message) => Message) | undefined;
  /** Names for metrics, for instance the data set. @default ["pair_pref"] */
  readonly tags?: readonly string[] | undefined;
}

/**
 * Answers to one prompt; the reward of each is its wins less its losses against the others, per match. An answer without a
 * clean end is judged too, with a penalty.
 */
export function tournamentGroup(
  prompt: string | readonly Message[],
  options: TournamentGroupOptions,
): EnvironmentGroup {
  const { renderer, judge, size = 4, matchupGroupSize = 4, formatCoefficient = 1 } = options;
  const { pattern = "all_pairs_both_ways", preprocess = (message) => message } = options;
  const messages = asMessages(prompt);
  const read = ({ transitions }: Trajectory): { message: Message; isValid: boolean } => {
    const tokens = transitions.at(-1)?.action.tokens ?? [];
    const { message, termination } = renderer.parseResponse(tokens);
    return { message: preprocess(message), isValid: termination !== "malformed" };
  };
  return groupOf({
    size,
    tags: options.tags ?? ["pair_pref"],
    sharesPrompt: true,
    make: () =>
      messageEnvironment(
        { start: () => messages, reply: () => ({ reward: 0 }) },
        // What a cut-off answer is worth is decided by the group.
        { renderer, overflowReward: 0, parseErrors: { reward: 0 } },
      ),
    async rewards(trajectories, _environments, { signal }) {
      const answers = trajectories.map(read);
      const pairs = tournamentPairs(answers.length, { pattern, chunkSize: matchupGroupSize });
      const scores = await Promise.all(
        pairs.map(([first, second]) =>
          judge(
            {
              prompt: messages,
              completionA: [answers[first]!.message],
              completionB: [answers[second]!.message],
            },
            { signal },
          ),
        ),
      );
      const wins = tournamentScores(answers.length, pairs, scores);
      return answers.map(({ isValid }, member) => ({
        reward: wins[member]! - formatCoefficient * Number(!isValid),
        metrics: { win_minus_loss: wins[member]!, format: Number(isValid) },
      }));
    },
  });
}

/** How a model's answers are compared with given ones. */
export interface WinRateOptions {
  /** Prompts with the answers to beat. */
  readonly rows: readonly {
    readonly prompt: string | readonly Message[];
    readonly completion: string | readonly Message[];
  }[];
  /** Who judges. */
  readonly judge: PreferenceModel;
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Most tokens of an answer. @default 1024 */
  readonly maxTokens?: number | undefined;
  /** @default 1 */
  readonly temperature?: number | undefined;
  /** Makes the answers repeatable. @default 0 */
  readonly seed?: number | undefined;
  /** Goes before the names of the metrics. @default none */
  readonly name?: string | undefined;
}

/** How often a judge prefers the model's answers to given ones, judged in both orders: `win_rate`, `stderr`. */
export function winRateEvaluator(options: WinRateOptions): Evaluator {
  const { rows, judge, renderer, maxTokens = 1024, temperature = 1, seed = 0, name } = options;
  const prefix = name === undefined ? "" : `${name}/`;
  return {
    name: name ?? "win_rate",
    async evaluate({ sampler, signal }) {
      const sampling = await sampler();
      const rates = await Promise.all(
        rows.map(async (row, index) => {
          const prompt = asMessages(row.prompt);
          const { sequences } = await sampling.sample({
            prompt: renderer.buildGenerationPrompt(prompt),
            samplingParams: {
              maxTokens,
              temperature,
              stop: renderer.stopSequences,
              seed: seed * 1_000_003 + index,
            },
            ...(signal && { signal }),
          });
          const own = [renderer.parseResponse(sequences[0]!.tokens).message];
          const theirs = asMessages(row.completion, "assistant");
          const [behind, before] = await Promise.all([
            judge({ prompt, completionA: theirs, completionB: own }, { signal }),
            judge({ prompt, completionA: own, completionB: theirs }, { signal }),
          ]);
          return (behind - before + 2) / 4;
        }),
      );
      return {
        [`${prefix}win_rate`]: meanOf(rates),
        [`${prefix}stderr`]: standardError(rates),
      };
    },
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
}

function standardError(values: readonly number[]): number {
  if (values.length <= 1) return 0;
  const mean = meanOf(values);
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1) / values.length);
}
