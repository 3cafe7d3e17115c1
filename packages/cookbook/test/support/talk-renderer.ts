import type { Message, Renderer } from "@tinker-ts/cookbook/renderers";
import { ModelInput } from "tinker-ts";

/**
 * A chat format for tests around renderers: `role: text` and a newline, every character a token, so that
 * texts can be read in the tokens.
 */
export function talkRenderer(): Renderer & {
  readonly spell: (tokens: Iterable<number>) => string;
  readonly tokens: (text: string) => Int32Array;
} {
  const tokens = (text: string): Int32Array =>
    Int32Array.from(text, (character) => character.codePointAt(0)!);
  const spell = (list: Iterable<number>): string => String.fromCodePoint(...list);
  const write = (messages: readonly Message[]): string =>
    messages.map(({ role, content }) => `${role}: ${content as string}\n`).join("");
  const unused = (): never => {
    throw new Error("not used in these tests");
  };
  return {
    name: "talk",
    tokenizer: undefined as never,
    hasExtensionProperty: true,
    disablesThinking: false,
    supportsStreaming: false,
    stopSequences: [10],
    spell,
    tokens,
    buildGenerationPrompt: (messages) =>
      ModelInput.fromInts(tokens(`${write(messages)}assistant: `)),
    buildSupervisedExample: unused,
    buildSupervisedExamples: unused,
    parseResponse(list) {
      const text = spell(list);
      const isWhole = text.endsWith("\n");
      return {
        message: { role: "assistant", content: isWhole ? text.slice(0, -1) : text },
        termination: isWhole ? "stop_sequence" : "malformed",
      };
    },
    streamingParser: unused,
    createConversationPrefixWithTools: unused,
    toOpenAIMessage: unused,
  };
}
