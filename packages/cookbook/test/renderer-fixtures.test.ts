import { beforeAll, describe, expect, it } from "vitest";
import {
  classifyParseFailure,
  getRenderer,
  listRenderers,
  trainOnWhat,
  type Renderer,
  type TrainOnWhat,
} from "@tinker-ts/cookbook/renderers";
import {
  caseFile,
  comparable,
  fromRuns,
  shapeOf,
  stubOf,
  toFixtureEvents,
  toMessage,
  toOptions,
  toPieces,
  toRuns,
  type RendererCase,
} from "./support/renderer-cases.js";

// Recorded behaviour of the Python cookbook's renderers: output, weights, stops, parsing, tools and errors. Cases with a tag show
// a weakness that we do not share: there the result may differ, and the expected result is in
// renderer-differences.test.ts. Two tags concern only some modes of training; the others are compared.

const onlySomeModes = new Set(["prefill_weights", "customized_inserted_system"]);

/**
 * The weaknesses in which we differ. A case with any other tag must match: so do `declaration_markers`, where
 * the same marks are tokens, and `unreachable_turn`, where another form has to be asked for.
 */
const knownTags = new Set([
  ...onlySomeModes,
  "analysis_in_history",
  "ascii_json",
  "call_without_text",
  "double_think",
  "duplicate_stop",
  "empty_text_part",
  "inline_think",
  "marker_prefill",
  "marker_text",
  "markup_as_content",
  "missing_tool_field",
  "narrow_name",
  "no_terminator",
  "routing_message",
  "separate_results",
  "separator_kept",
  "several_calls",
  "strip_after_user",
  "think_after_tool",
  "trailing_blank",
  "untrimmed_thinking",
  "unused_overlap",
]);

const groups = new Map<string, RendererCase[]>();
for (const entry of caseFile.cases) {
  const { renderer, family, options } = entry;
  const key = [renderer, family, ...(options ? [JSON.stringify(options)] : [])].join(" ");
  groups.set(key, [...(groups.get(key) ?? []), entry]);
}

describe.each([...groups])("%s", (_, cases) => {
  const { renderer: name, family, options } = cases[0]!;
  let renderer: Renderer;

  beforeAll(async () => {
    if (!listRenderers().includes(name)) return;
    renderer = await getRenderer(name, stubOf(family), toOptions(options));
  });

  it.each(cases.map((entry) => [titleOf(entry), entry] as const))("%s", async (_title, entry) => {
    await checkCase(entry, renderer);
  });
});

function titleOf({ id, kind, op, reason, tags }: RendererCase): string {
  const what = kind === "error" ? `refuses ${op}: ${reason}` : kind;
  return `${id} ${what}${tags ? ` [known difference: ${tags.join(", ")}]` : ""}`;
}

async function checkCase(entry: RendererCase, renderer: Renderer): Promise<void> {
  const tags = entry.tags ?? [];
  const differs = tags.some((tag) => knownTags.has(tag) && !onlySomeModes.has(tag));
  if (entry.kind === "supervised") return checkSupervised(entry, renderer, differs);
  const actual = async () => run(entry, entry.kind === "error" ? entry.op! : entry.kind, renderer);
  if (tags.includes("missing_tool_field")) return expect(actual()).rejects.toThrow();
  if (differs) {
    // Any result is accepted, and an error if the reference has one.
    const result = await actual().catch((error: unknown) => error);
    if (tags.includes("duplicate_stop")) expect(result).toMatchObject({ termination: "malformed" });
    if (entry.kind !== "error") expect(result).not.toBeInstanceOf(Error);
    return;
  }
  // The message that a format adds is never trained, so it needs no flag.
  if (entry.kind === "error" && tags.includes("customized_inserted_system")) {
    return expect(actual()).resolves.toBeDefined();
  }
  if (entry.kind === "error") return expect(actual()).rejects.toThrow();
  expect(await actual()).toEqual(expectedOf(entry));
}

async function run(entry: RendererCase, kind: string, renderer: Renderer): Promise<unknown> {
  const stub = stubOf(entry.family);
  const messages = (entry.messages ?? []).map(toMessage);
  switch (kind) {
    case "construct":
      return getRenderer(entry.renderer, stub, toOptions(entry.options));
    case "generation": {
      const { role, prefill } = entry;
      const prompt = renderer.buildGenerationPrompt(messages, {
        ...(role === undefined ? {} : { role }),
        ...(typeof prefill === "string" ? { prefill } : {}),
      });
      return shapeOf(stub, prompt);
    }
    case "supervised":
      return renderer.buildSupervisedExample(messages, entry.mode);
    case "split":
      return renderer.buildSupervisedExamples(messages, entry.mode).map(({ input, weights }) => ({
        ...shapeOf(stub, input),
        weights: toRuns(weights),
      }));
    case "stops":
      return renderer.stopSequences.map((stop) =>
        typeof stop === "string" ? stop : toPieces(stub, [stop])[0],
      );
    case "parse": {
      const parsed = renderer.parseResponse(stub.encode(entry.sampled!));
      const failure = classifyParseFailure(parsed)?.kind ?? null;
      return { message: comparable(parsed.message), termination: parsed.termination, failure };
    }
    case "stream": {
      const ids = stub.encode(entry.sampled!);
      const close = stub.tokenToId("</think>");
      // The file was made with the whole answer at hand, so it is known whether it closes a block.
      const insideThinking = close !== null && ids.includes(close);
      const parser = renderer.streamingParser({ insideThinking });
      const events = [...ids].flatMap((id) => parser.push(id));
      const last = parser.finish();
      return {
        events: toFixtureEvents([...events, ...last.events]),
        message: comparable(last.message),
      };
    }
    case "tools": {
      const prefix = renderer.createConversationPrefixWithTools(entry.tools!, entry.system_prompt);
      const prompt = renderer.buildGenerationPrompt([...prefix, { role: "user", content: "hi" }]);
      const { pieces, chunk_lengths } = shapeOf(stub, prompt);
      return { messages: prefix.map(({ content }) => content), pieces, chunk_lengths };
    }
    case "openai":
      return renderer.toOpenAIMessage(toMessage(entry.message!));
    default:
      throw new Error(`unknown kind ${kind}`);
  }
}

function expectedOf(entry: RendererCase): unknown {
  const { pieces, chunk_lengths } = entry;
  switch (entry.kind) {
    case "generation":
      return { pieces, chunk_lengths };
    case "split":
      return entry.examples;
    case "stops":
      return entry.stops;
    case "parse": {
      const message = comparable(toMessage(entry.message!));
      return { message, termination: entry.termination, failure: entry.failure };
    }
    case "stream":
      return { events: entry.events, message: comparable(toMessage(entry.message!)) };
    case "tools":
      return { messages: entry.messages!.map(({ content }) => content), pieces, chunk_lengths };
    default:
      return entry.expected;
  }
}

function checkSupervised(entry: RendererCase, renderer: Renderer, differs: boolean): void {
  const stub = stubOf(entry.family);
  const tags = entry.tags ?? [];
  for (const mode of trainOnWhat) {
    const messages = entry.messages!.map((message, index) => ({
      ...toMessage(message),
      ...(mode === "customized" ? { trainable: entry.trainable![index]! } : {}),
    }));
    const build = () => renderer.buildSupervisedExample(messages, mode);
    if (tags.includes("missing_tool_field")) {
      expect(build, mode).toThrow();
      continue;
    }
    if (differs) {
      checkWhole(build, entry.refused?.[mode] !== undefined);
      continue;
    }
    const isMended = mode === "customized" && tags.includes("customized_inserted_system");
    if (entry.refused?.[mode] !== undefined && !isMended) {
      expect(build, mode).toThrow();
      continue;
    }
    const { input, weights } = build();
    expect(shapeOf(stub, input), mode).toEqual({
      pieces: entry.pieces,
      chunk_lengths: entry.chunk_lengths,
    });
    checkWeights(entry, mode, weights);
  }
}

/** Tokens that the prompt supplies may lose their weight in the modes that the case names; nothing else may. */
function checkWeights(entry: RendererCase, mode: TrainOnWhat, weights: Float32Array): void {
  const runs = entry.weights?.[mode];
  if (!runs) return;
  if (!entry.prefill_modes?.includes(mode)) {
    expect(toRuns(weights), mode).toEqual(runs);
    return;
  }
  const reference = fromRuns(runs);
  expect(weights.length, mode).toBe(reference.length);
  expect(
    [...weights].every((weight, index) => weight <= reference[index]!),
    mode,
  ).toBe(true);
}

function checkWhole(build: Renderer["buildSupervisedExample"], mayRefuse: boolean): void {
  try {
    const { input, weights } = (build as () => ReturnType<typeof build>)();
    expect(weights.length).toBe(input.length);
  } catch (error) {
    if (!mayRefuse) throw error;
  }
}
