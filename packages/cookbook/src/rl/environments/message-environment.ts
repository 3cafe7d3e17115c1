import { ArgumentError, type ModelInput } from "tinker-ts";
import type { Message, ParsedResponse, Renderer } from "../../renderers/index.js";
import type { Environment, Numbers, Observation, StepContext, StepResult } from "../types.js";

/** The result of a message. */
export interface MessageStep {
  /** Reward of this turn. */
  readonly reward: number;
  /** The next messages for the policy; absent at the end of the episode. */
  readonly messages?: readonly Message[] | undefined;
  /** Why the episode is over. @default "completed" */
  readonly stopReason?: string | undefined;
  /** Numbers to average. */
  readonly metrics?: Numbers | undefined;
  /** Texts and numbers to show. */
  readonly logs?: StepResult["logs"];
}

/** An episode in messages. */
export interface Conversation {
  /** The messages that the policy answers first. */
  start(context: StepContext): readonly Message[] | Promise<readonly Message[]>;
  /** Takes the policy's message; `response` has its termination. */
  reply(
    message: Message,
    response: ParsedResponse,
    context: StepContext,
  ): MessageStep | Promise<MessageStep>;
  /** Gives back what the episode holds. */
  close?(): void | Promise<void>;
}

/** Options of message environments. */
export interface MessageEnvironmentOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Positions of prompt and answer together. */
  readonly maxTrajectoryTokens?: number | undefined;
  /** Positions to keep free for an answer. @default 0 */
  readonly maxGenerationTokens?: number | undefined;
  /** Reward of an episode that no longer fits, or of an answer that was cut off. @default -0.1 */
  readonly overflowReward?: number | undefined;
  /** Whether an answer that was cut off ends the episode. @default true */
  readonly endsOnLength?: boolean | undefined;
  /** The handling of answers that cannot be read. */
  readonly parseErrors?: ParseErrorPolicy | undefined;
}

/** The handling of answers that cannot be read. */
export interface ParseErrorPolicy {
  /** Reward of an answer without a clean end, and of one that was tried too often. @default -1 */
  readonly reward?: number | undefined;
  /** Whether an answer without a clean end ends the episode; otherwise the same prompt is answered again. @default true */
  readonly endsEpisode?: boolean | undefined;
  /** Times in a row that calls which cannot be read may be tried again. @default 0 */
  readonly maxRetries?: number | undefined;
  /** The message for the retry; `{details}` is the error. */
  readonly retryMessage?: string | undefined;
  /** Taken from the reward of a turn that is tried again. @default 0 */
  readonly penalty?: number | undefined;
  /** Whether such turns are left out of training. @default false */
  readonly masksTurns?: boolean | undefined;
}

const longestDetails = 16_384;
const askAgain =
  "Your last message could not be read: {details} Please answer again in the expected form.";

/**
 * An episode in messages as one in tokens.
 *
 * - An answer without a clean end is not part of the conversation, because it cannot be read.
 * - An answer without a readable tool call may be tried again; with one readable call it counts as read.
 * - When the next prompt does not fit, the episode is over with the reward for that instead of the turn's.
 */
export function messageEnvironment(
  conversation: Conversation,
  options: MessageEnvironmentOptions,
): Environment {
  const { renderer, endsOnLength = true, overflowReward = -0.1, parseErrors = {} } = options;
  const history: Message[] = [];
  let failures = 0;

  const observe = (): Observation & { readonly input: ModelInput } => ({
    input: renderer.buildGenerationPrompt(history),
    stop: renderer.stopSequences,
  });
  const fits = (input: ModelInput): boolean =>
    input.length + (options.maxGenerationTokens ?? 0) <=
    (options.maxTrajectoryTokens ?? Number.POSITIVE_INFINITY);

  /** The step with its next prompt, or its end when that does not fit. */
  const goOn = (step: StepResult): StepResult => {
    const next = observe();
    if (fits(next.input)) return { ...step, next };
    return {
      ...step,
      reward: overflowReward,
      stopReason: "context_overflow",
      metrics: { ...step.metrics, context_overflow: 1 },
    };
  };

  const { masksTurns: masked } = parseErrors;
  /** The result of a turn that cannot be read. */
  const unreadable = {
    metrics: { parse_error: 1, ...(masked ? { parse_error_masked: 1 } : {}) },
    masked,
  };

  const readable = ({ message }: ParsedResponse): boolean =>
    (message.unparsedToolCalls?.length ?? 0) === 0 || (message.toolCalls?.length ?? 0) > 0;

  const tryAgain = ({ message }: ParsedResponse): StepResult => {
    const { reward = -1, maxRetries = 0, retryMessage = askAgain, penalty = 0 } = parseErrors;
    failures++;
    if (failures > maxRetries) return { reward, stopReason: "parse_error", ...unreadable };
    const details = message.unparsedToolCalls!.map(({ error }) => error).join(" ");
    const text = retryMessage.replace("{details}", () => details.slice(0, longestDetails));
    history.push(message, { role: "user", content: text });
    return goOn({ reward: -penalty, ...unreadable });
  };

  return {
    async start(context) {
      const messages = await conversation.start(context);
      if (messages.length === 0)
        throw new ArgumentError("start", "must return at least one message");
      history.push(...messages);
      const first = observe();
      if (fits(first.input)) return first;
      return { overflow: true, reward: overflowReward, metrics: { context_overflow: 1 } };
    },

    async step(action, context) {
      const cutOff = action.stopReason === "length";
      const metrics = cutOff ? { max_tokens_reached: 1 } : {};
      if (cutOff && endsOnLength)
        return { reward: overflowReward, stopReason: "max_tokens", metrics };
      const response = renderer.parseResponse(action.tokens);
      if (response.termination === "malformed" && !cutOff) {
        const { reward = -1, endsEpisode = true } = parseErrors;
        const failed = { reward, ...unreadable };
        return endsEpisode ? { ...failed, stopReason: "parse_error" } : goOn(failed);
      }
      if (!readable(response)) return tryAgain(response);
      failures = 0;
      history.push(response.message);
      const step = await conversation.reply(response.message, response, context);
      const unread = response.message.unparsedToolCalls?.length ? { parse_error: 1 } : {};
      const result = {
        reward: step.reward,
        stopReason: step.stopReason,
        metrics: { ...metrics, ...unread, ...step.metrics },
        logs: step.logs,
      };
      if (!step.messages) return result;
      history.push(...step.messages);
      return goOn(result);
    },

    close: () => conversation.close?.(),
  };
}
