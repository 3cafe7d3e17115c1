import type { Message, Renderer, SupervisedExample } from "@tinker-ts/cookbook/renderers";
import type { Datum, SamplingClient } from "tinker-ts";

/** Messages to answer, and the answer that is wanted where one is known. */
export interface Question {
  readonly asked: readonly Message[];
  readonly wanted?: Message | undefined;
}

/** Conversations that end with an answer, as questions. */
export function questionsOf(
  conversations: readonly { readonly messages: readonly Message[] }[],
  count: number,
): Question[] {
  return conversations
    .filter(({ messages }) => messages.length > 1 && messages.at(-1)!.role === "assistant")
    .slice(0, count)
    .map(({ messages }) => ({ asked: messages.slice(0, -1), wanted: messages.at(-1)! }));
}

/** The most probable answers of a model. */
export async function answerAll(
  sampling: SamplingClient,
  renderer: Renderer,
  questions: readonly Question[],
  signal: AbortSignal,
): Promise<Message[]> {
  const samplingParams = { maxTokens: 64, temperature: 0, stop: renderer.stopSequences };
  const answers = questions.map(async ({ asked }) => {
    const prompt = renderer.buildGenerationPrompt(asked);
    const { sequences } = await sampling.sample({ prompt, samplingParams, signal });
    return renderer.parseResponse(sequences[0]!.tokens).message;
  });
  return Promise.all(answers);
}

/** A datum as the sequence that it was made of, after it was cut. */
export function sequenceOf({ modelInput, lossFnInputs }: Datum): SupervisedExample {
  const targets = lossFnInputs["target_tokens"]!.data;
  const weights = lossFnInputs["weights"]!.data as ArrayLike<number>;
  return {
    input: modelInput.appendInt(Number(targets.at(-1))),
    weights: Float32Array.from([0, ...Array.from(weights)]),
  };
}
