import type { Message, Renderer, Termination } from "../renderers/index.js";
import type { Policy, PolicyRequest } from "./policy.js";
import type { Action, StopCondition } from "./types.js";

/** An answer to a conversation, and how it came to its end. */
export interface Completion {
  /** The answer; calls that could not be read are in it. */
  readonly message: Message;
  /** Whether it ended as it should. */
  readonly termination: Termination;
  /** What was sampled, with log-probabilities. */
  readonly action: Action;
}

/** Something that answers conversations. */
export type MessageCompleter = (
  messages: readonly Message[],
  options?: Pick<PolicyRequest, "maxTokens" | "seed" | "signal">,
) => Promise<Completion>;

/** A policy that speaks in messages, for instance to play an opponent, a user or a judge. */
export function messageCompleter(
  policy: Policy,
  options: {
    /** The model's chat format. */
    readonly renderer: Renderer;
    /** Where an answer ends. @default where the format ends a message */
    readonly stop?: StopCondition | undefined;
  },
): MessageCompleter {
  const { renderer, stop = renderer.stopSequences } = options;
  return async (messages, bounds = {}) => {
    const input = renderer.buildGenerationPrompt(messages);
    const action = await policy({ ...bounds, input, stop });
    return { ...renderer.parseResponse(action.tokens), action };
  };
}
