import { readFileSync } from "node:fs";
import type {
  Message,
  RendererOptions,
  StreamEvent,
  ToolSpec,
  TrainOnWhat,
} from "@tinker-ts/cookbook/renderers";
import type { ModelInput } from "tinker-ts";
import { StubTokenizer, type StubVocabulary } from "./stub-tokenizer.js";

/** A run of characters, or one mark. */
export type FixturePiece = string | { readonly special: string };

/** Run lengths: a weight and for how many tokens it holds. */
export type WeightRuns = readonly (readonly [weight: number, tokens: number])[];

interface FixtureExample {
  readonly pieces: readonly FixturePiece[];
  readonly chunk_lengths: readonly number[];
  readonly weights: WeightRuns;
}

type FixtureMessage = Readonly<Record<string, unknown>>;

/** One case of the file; which fields it has depends on its kind. */
export interface RendererCase {
  readonly id: number;
  readonly kind: string;
  readonly op?: string;
  readonly renderer: string;
  readonly family: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly messages?: readonly FixtureMessage[];
  readonly role?: string;
  readonly prefill?: string;
  readonly mode?: TrainOnWhat;
  readonly trainable?: readonly boolean[];
  readonly refused?: Readonly<Partial<Record<TrainOnWhat, string>>>;
  readonly prefill_modes?: readonly TrainOnWhat[];
  readonly pieces?: readonly FixturePiece[];
  readonly chunk_lengths?: readonly number[];
  readonly weights?: Readonly<Record<TrainOnWhat, WeightRuns>>;
  readonly examples?: readonly FixtureExample[];
  readonly stops?: readonly FixturePiece[];
  readonly sampled?: string;
  readonly message?: FixtureMessage;
  readonly termination?: string;
  readonly failure?: string | null;
  readonly events?: readonly (readonly unknown[])[];
  readonly tools?: readonly ToolSpec[];
  readonly system_prompt?: string;
  readonly expected?: unknown;
  readonly reason?: string;
}

/** A renderer as the file lists it. */
export interface ListedRenderer {
  readonly renderer: string;
  readonly family: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly has_extension_property: boolean;
  readonly disables_thinking: boolean;
  readonly supports_streaming: boolean;
}

interface CaseFile {
  readonly tokenizers: Readonly<Record<string, StubVocabulary>>;
  readonly renderers: readonly ListedRenderer[];
  readonly cases: readonly RendererCase[];
}

/** The file of cases. */
export const caseFile: CaseFile = JSON.parse(
  readFileSync(new URL("../fixtures/renderers.json", import.meta.url), "utf8"),
);

const stubs = new Map<string, StubTokenizer>();

/** The stub of a family. */
export function stubOf(family: string): StubTokenizer {
  let stub = stubs.get(family);
  if (!stub) stubs.set(family, (stub = new StubTokenizer(caseFile.tokenizers[family]!)));
  return stub;
}

/** Options with camelCase names. */
export function toOptions(options: RendererCase["options"] = {}): RendererOptions {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}

/** A message of the file as ours. */
export function toMessage(message: FixtureMessage): Message {
  const { tool_calls, unparsed_tool_calls, tool_call_id, ...same } = message;
  const unparsed = unparsed_tool_calls as { raw_text: string; error: string }[] | undefined;
  return {
    ...same,
    ...(tool_calls ? { toolCalls: tool_calls } : {}),
    ...(unparsed
      ? { unparsedToolCalls: unparsed.map(({ raw_text, error }) => ({ rawText: raw_text, error })) }
      : {}),
    ...(tool_call_id === undefined ? {} : { toolCallId: tool_call_id }),
  } as unknown as Message;
}

/** Tokens as pieces. */
export function toPieces(stub: StubTokenizer, ids: Iterable<number>): FixturePiece[] {
  const pieces: FixturePiece[] = [];
  for (const id of ids) {
    const mark = stub.markOf(id);
    const last = pieces.at(-1);
    if (mark !== undefined) pieces.push({ special: mark });
    else if (typeof last === "string") pieces[pieces.length - 1] = last + String.fromCodePoint(id);
    else pieces.push(String.fromCodePoint(id));
  }
  return pieces;
}

/** What a rendered input is compared by. */
export function shapeOf(
  stub: StubTokenizer,
  input: ModelInput,
): { pieces: FixturePiece[]; chunk_lengths: number[] } {
  const lengths = input.chunks.map((chunk) => ("tokens" in chunk ? chunk.tokens.length : 0));
  return { pieces: toPieces(stub, input.toInts()), chunk_lengths: lengths };
}

/** Weights as run lengths. */
export function toRuns(weights: Float32Array): [number, number][] {
  const runs: [number, number][] = [];
  for (const weight of weights) {
    const last = runs.at(-1);
    if (last?.[0] === weight) last[1]++;
    else runs.push([weight, 1]);
  }
  return runs;
}

/** One weight per token. */
export function fromRuns(runs: WeightRuns): number[] {
  return runs.flatMap(([weight, tokens]) => Array<number>(tokens).fill(weight));
}

/** A message as it is compared: the words behind the colon of an error are everybody's own. */
export function comparable(message: Message): unknown {
  if (!message.unparsedToolCalls) return message;
  return {
    ...message,
    unparsedToolCalls: message.unparsedToolCalls.map(({ rawText, error }) => ({
      rawText,
      error: error.split(":")[0],
    })),
  };
}

/** Events as the file has them. */
export function toFixtureEvents(events: readonly StreamEvent[]): unknown[] {
  return events.map((event) =>
    event.type === "header"
      ? ["header", event.role]
      : [event.type, event.contentIndex, event.delta],
  );
}
