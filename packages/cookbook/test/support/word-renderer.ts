import type { Message, Renderer, TrainOnWhat } from "@tinker-ts/cookbook/renderers";
import { ModelInput } from "tinker-ts";

/**
 * A chat format in which every word is a token, for tests around renderers: `(role) words .`
 * with everything of the trained messages learned but their headers.
 */
export function wordRenderer(vocabulary: Map<string, number> = new Map()): Renderer {
  const idOf = (word: string): number => {
    if (!vocabulary.has(word)) vocabulary.set(word, vocabulary.size + 1);
    return vocabulary.get(word)!;
  };
  const isTrained = (message: Message, what: TrainOnWhat): boolean =>
    what === "customized" ? message.trainable === true : message.role === "assistant";
  const build = (messages: readonly Message[], what: TrainOnWhat = "all_assistant_messages") => {
    const tokens: number[] = [];
    const weights: number[] = [];
    for (const message of messages) {
      const words = [...(message.content as string).split(" "), "."];
      tokens.push(idOf(`(${message.role})`), ...words.map(idOf));
      weights.push(0, ...words.map(() => (isTrained(message, what) ? 1 : 0)));
    }
    return { input: ModelInput.fromInts(tokens), weights: Float32Array.from(weights) };
  };
  const unused = (): never => {
    throw new Error("not used in these tests");
  };
  return {
    name: "words",
    tokenizer: undefined as never,
    hasExtensionProperty: true,
    disablesThinking: false,
    supportsStreaming: false,
    stopSequences: [idOf(".")],
    buildGenerationPrompt: unused,
    buildSupervisedExample: build,
    buildSupervisedExamples: (messages, what) => [build(messages, what)],
    parseResponse: unused,
    streamingParser: unused,
    createConversationPrefixWithTools: (tools, system = "") => [
      { role: "system", content: `${system} ${tools.map(({ name }) => name).join(" ")}` },
    ],
    toOpenAIMessage: unused,
  };
}
