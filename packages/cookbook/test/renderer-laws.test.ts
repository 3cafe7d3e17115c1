import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  contentParts,
  getRenderer,
  listRenderers,
  textOf,
  thinkingOf,
  type Message,
  type Renderer,
  type ToolCall,
} from "@tinker-ts/cookbook/renderers";
import { caseFile, stubOf } from "./support/renderer-cases.js";
import type { StubTokenizer } from "./support/stub-tokenizer.js";
import { tokenizerOf } from "./support/template-tokenizers.js";

const runs = process.env["TINKER_TS_TEST_FULL"] ? 200 : 40;
const names = listRenderers().filter((name) => name !== "chat_template");
const familyOf = new Map(caseFile.renderers.map(({ renderer, family }) => [renderer, family]));

function stubFor(name: string): StubTokenizer {
  const family = familyOf.get(name);
  return family === undefined ? tokenizerOf(name) : stubOf(family);
}

/** Every mark of every family, so that texts spell those of the renderer among others. */
const allMarks = Object.values(caseFile.tokenizers).flatMap(({ special, added }) => [
  ...special,
  ...added,
]);

const words = [
  "a",
  "Zürich",
  "🙂",
  "1",
  " ",
  "\n",
  "\n\n",
  "<",
  "|>",
  "</",
  "User:",
  "to=x",
  "{}",
  ":0",
];
const nasty = fc
  .array(fc.constantFrom(...words, ...allMarks), { minLength: 1, maxLength: 6 })
  .map((pieces) => pieces.join(""));
/** Text without blanks at its ends, which some formats strip. */
const tidy = nasty.map((text) => `x${text}y`).filter((text) => !text.includes("\n\nUser:"));

const argument = fc.constantFrom("Paris", "</tool_call>", "<|im_end|>", "a\nb", "ü", "<think>");
const toolCall: fc.Arbitrary<ToolCall> = fc
  .record({ name: fc.constantFrom("get", "find-it.v2"), value: argument, other: argument })
  .map(({ name, value, other }) => ({
    id: null,
    function: { name, arguments: JSON.stringify({ city: value, key: other }) },
  }));

function answerOf(renderer: Renderer, { thinks, calls }: { thinks: boolean; calls: boolean }) {
  const isPlain = /^(role_colon|llama3)$/.test(renderer.name);
  // The format of Granite 4 has no place for reasoning.
  const reasons = !isPlain && !renderer.name.startsWith("granite4");
  const canThink = thinks && reasons && !renderer.disablesThinking;
  return fc
    .record({
      thinking: canThink ? fc.option(tidy, { nil: "" }) : fc.constant(""),
      text: tidy,
      toolCalls:
        calls && !isPlain ? fc.array(toolCall, { maxLength: 1 }) : fc.constant<ToolCall[]>([]),
    })
    .map(({ thinking, text, toolCalls }): Message => {
      if (isPlain) return { role: "assistant", content: text };
      return {
        role: "assistant",
        content: [
          ...(thinking === "" ? [] : [{ type: "thinking", thinking } as const]),
          { type: "text", text },
        ],
        ...(toolCalls.length > 0 ? { toolCalls: withIds(renderer, toolCalls) } : {}),
      };
    });
}

/** Kimi's calls have ids of a certain form; others have none. */
function withIds(renderer: Renderer, calls: readonly ToolCall[]): ToolCall[] {
  if (!renderer.name.startsWith("kimi")) return [...calls];
  return calls.map((call, index) => ({ ...call, id: `functions.${call.function.name}:${index}` }));
}

/** The content of a message, independent of its parts. */
function essence(message: Message): unknown {
  return {
    thinking: thinkingOf(message),
    text: textOf(message),
    calls: (message.toolCalls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: JSON.parse(called.arguments) as unknown,
    })),
    unparsed: message.unparsedToolCalls ?? [],
  };
}

function sampledAnswer(renderer: Renderer, messages: readonly Message[]): Int32Array {
  const { input, weights } = renderer.buildSupervisedExample(messages);
  return input.toInts().slice(weights.indexOf(1));
}

/** Turns of a chat: messages of the user and answers of the assistant. */
function chat(renderer: Renderer, thinks: boolean) {
  const turn = fc.tuple(tidy, answerOf(renderer, { thinks, calls: false }));
  return fc
    .array(turn, { minLength: 1, maxLength: 3 })
    .map((turns) =>
      turns.flatMap(([text, answer]): Message[] => [{ role: "user", content: text }, answer]),
    );
}

describe.each(names)("%s", (name) => {
  let renderer: Renderer;
  /** Nemotron writes a turn without reasoning in a form that its prompt does not lead to. */
  const isUnreachable = name.startsWith("nemotron3") && !name.includes("disable");

  beforeAll(async () => {
    const options = { currentDate: "2025-06-01", reachableTurns: isUnreachable };
    renderer = await getRenderer(name, stubFor(name), options);
  });

  it("trains exactly what follows the prompt, and parses it to the original message", () => {
    fc.assert(
      fc.property(
        fc.context(),
        tidy,
        answerOf(renderer, { thinks: true, calls: true }),
        (context, asked, answer) => {
          const before: Message[] = [{ role: "user", content: asked }];
          const { input, weights } = renderer.buildSupervisedExample([...before, answer]);
          const prompt = renderer.buildGenerationPrompt(before).toInts();
          expect(input.toInts().slice(0, prompt.length)).toEqual(prompt);
          const isTrained = Array.from(weights, (_, index) => (index >= prompt.length ? 1 : 0));
          expect([...weights]).toEqual(isTrained);
          const parsed = renderer.parseResponse(input.toInts().slice(prompt.length));
          context.log(JSON.stringify(parsed));
          expect(parsed.termination).toBe("stop_sequence");
          expect(essence(parsed.message)).toEqual(essence(withoutDropped(renderer, answer)));
        },
      ),
      { numRuns: runs },
    );
  });

  it("keeps texts of messages as text, and loses none of it", () => {
    const marks = stubFor(name).marks;
    const forged = `x${marks.join("")}`;
    const count = (ids: Int32Array) => ids.filter((id) => id >= 0x110000).length;
    const build = (text: string): Int32Array => {
      const isPlain = /^(role_colon|llama3)$/.test(name);
      const calls = withIds(renderer, [
        { id: null, function: { name: "get", arguments: JSON.stringify({ [text]: text }) } },
      ]);
      return renderer
        .buildGenerationPrompt(
          [
            { role: "system", content: text },
            { role: "user", content: text },
            {
              role: "assistant",
              content: text,
              ...(isPlain ? {} : { toolCalls: calls }),
            },
            { role: "tool", content: text, name: "get", toolCallId: isPlain ? "x" : text },
            { role: "user", content: text },
          ],
          { prefill: text },
        )
        .toInts();
    };
    expect(count(build(forged))).toBe(count(build("x")));
    expect(renderer.tokenizer.decode(build(forged)).split(forged).length).toBeGreaterThanOrEqual(6);
  });

  it("puts a prefill after the prompt and changes nothing else", () => {
    fc.assert(
      fc.property(tidy, tidy, (asked, prefill) => {
        const messages: Message[] = [{ role: "user", content: asked }];
        const prompt = renderer.buildGenerationPrompt(messages).toInts();
        const longer = renderer.buildGenerationPrompt(messages, { prefill }).toInts();
        expect(longer.slice(0, prompt.length)).toEqual(prompt);
        expect(renderer.tokenizer.decode(longer.slice(prompt.length))).toBe(prefill);
      }),
      { numRuns: runs },
    );
  });

  it("keeps each prompt and answer as a prefix of the next prompt if it has the extension property", () => {
    if (!renderer.hasExtensionProperty) return;
    // Models of these formats do not reason; reasoning of others in their history is dropped.
    const thinks = name !== "qwen3_instruct";
    fc.assert(
      fc.property(chat(renderer, thinks), (messages) => {
        for (let end = 2; end < messages.length; end += 2) {
          const prompt = renderer.buildGenerationPrompt(messages.slice(0, end - 1)).toInts();
          const answer = sampledAnswer(renderer, messages.slice(0, end));
          const next = renderer.buildGenerationPrompt(messages.slice(0, end + 1)).toInts();
          expect(next.slice(0, prompt.length + answer.length)).toEqual(
            Int32Array.from([...prompt, ...answer]),
          );
        }
      }),
      { numRuns: runs },
    );
  });

  it("makes an example that begins with the prompt for each trained answer", () => {
    fc.assert(
      fc.property(chat(renderer, true), (messages) => {
        const examples = renderer.buildSupervisedExamples(messages, "all_assistant_messages");
        const last = examples.at(-1)!;
        const prompt = renderer.buildGenerationPrompt(messages.slice(0, -1)).toInts();
        expect(last.input.toInts().slice(0, prompt.length)).toEqual(prompt);
        if (renderer.hasExtensionProperty) expect(examples).toHaveLength(1);
        for (const { input, weights } of examples) expect(weights.length).toBe(input.length);
      }),
      { numRuns: runs },
    );
  });

  it("parses an answer in any parts like the whole answer", () => {
    if (!renderer.supportsStreaming) {
      expect(() => renderer.streamingParser()).toThrow("in parts");
      return;
    }
    const stub = stubFor(name);
    const tags = ["<think>", "</think>", "<tool_call>", "</tool_call>"];
    const sampled = fc.array(fc.constantFrom(...words, ...tags, ...stub.marks), { maxLength: 10 });
    const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 5 }));
    fc.assert(
      fc.property(sampled, fc.boolean(), cuts, (pieces, insideThinking, sizes) => {
        const ids = [...stub.encode(pieces.join(""))];
        const whole = renderer.streamingParser({ insideThinking });
        const wholeEvents = [...whole.push(ids), ...whole.finish().events];
        const parser = renderer.streamingParser({ insideThinking });
        const events = [];
        for (let at = 0; at < ids.length;) {
          const size = sizes.next().value;
          events.push(...parser.push(ids.slice(at, at + size)));
          at += size;
        }
        const { message, termination, events: rest } = parser.finish();
        expect(joined([...events, ...rest])).toEqual(joined(wholeEvents));
        expect({ message, termination }).toEqual(renderer.parseResponse(ids, { insideThinking }));
      }),
      { numRuns: runs },
    );
  });
});

/** DeepSeek's renderer without thinking leaves reasoning out of what it writes. */
function withoutDropped(renderer: Renderer, answer: Message): Message {
  if (!/^deepseekv3($|_disable)/.test(renderer.name)) return answer;
  return {
    ...answer,
    content: contentParts(answer.content).filter(({ type }) => type !== "thinking"),
  };
}

function joined(events: readonly { type: string; contentIndex?: number; delta?: string }[]) {
  const texts = new Map<string, string>();
  for (const { type, contentIndex, delta = "" } of events) {
    const key = `${type} ${contentIndex}`;
    texts.set(key, (texts.get(key) ?? "") + delta);
  }
  return [...texts];
}
