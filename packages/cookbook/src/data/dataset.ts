import { ArgumentError, type Datum } from "tinker-ts";
import {
  rendererForTools,
  type Message,
  type Renderer,
  type TrainOnWhat,
} from "../renderers/index.js";
import { DataError } from "./data-error.js";
import { toDatum, weightsOf, type DatumOptions } from "./datum.js";
import type { Conversation } from "./conversation.js";
import type { BadRow, PlacedConversation } from "./load-conversations.js";
import { permutation, seededRandom } from "./random.js";

/**
 * Data in batches. A batch depends only on its epoch and index, so that a resumed run trains the same ones.
 */
export interface Dataset {
  /** Full batches of an epoch; the remaining rows are not trained. */
  readonly batchesPerEpoch: number;
  /** The data of a batch; both numbers start at 0. */
  batch(epoch: number, index: number): Promise<readonly Datum[]> | readonly Datum[];
}

/** How conversations become data. */
export interface RenderOptions extends DatumOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /**
   * The messages to learn; `trainable` of the messages of a conversation takes precedence.
   * @default "all_assistant_messages"
   */
  readonly trainOnWhat?: TrainOnWhat | undefined;
}

/** How rows become batches. */
export interface DatasetOptions extends RenderOptions {
  /** Conversations per batch. */
  readonly batchSize: number;
  /** Random seed for the order of rows. @default 0 */
  readonly seed?: number | undefined;
  /** Whether rows are shuffled. @default true */
  readonly shuffle?: boolean | undefined;
  /** The model's context length; a longer row that `maxLength` does not cut is a bad row. */
  readonly contextLength?: number | undefined;
}

/** The size of a data set. */
export interface DataReport {
  readonly rows: number;
  readonly data: number;
  /** Positions that the model reads in an epoch. */
  readonly tokens: number;
  /** Tokens that it learns to predict. */
  readonly trainedTokens: number;
  /** The length of the longest sequence before cutting. */
  readonly longest: number;
  /** Rows that were cut to `maxLength`. */
  readonly truncatedRows: number;
  /** Rows without a token to learn, and rows that cannot be rendered. */
  readonly badRows: readonly BadRow[];
}

/** Rendered rows are kept up to about a quarter of a gigabyte; others are rendered each time. */
const maxKeptTokens = 16_000_000;

/** A row as data, and the length of its longest sequence before cutting. */
interface RenderedRow {
  readonly data: readonly Datum[];
  readonly length: number;
}

/** One conversation as data: one datum, or one per answer where the format rewrites earlier turns. */
export function conversationToData(
  conversation: Conversation,
  options: RenderOptions,
): readonly Datum[] {
  return renderRow(conversation, options).data;
}

function renderRow(conversation: Conversation, options: RenderOptions): RenderedRow {
  const { trainOnWhat = "all_assistant_messages" } = options;
  // A format without functions has them in text, as in training by rewards.
  const renderer = usesTools(conversation) ? rendererForTools(options.renderer) : options.renderer;
  const isCustomized = conversation.messages.some(({ trainable }) => trainable !== undefined);
  const messages = withTools(conversation, renderer);
  const examples = renderer.buildSupervisedExamples(
    isCustomized ? messages.map((message) => ({ trainable: false, ...message })) : messages,
    isCustomized ? "customized" : trainOnWhat,
  );
  return {
    data: examples.map((example) => toDatum(example, options)),
    length: Math.max(0, ...examples.map(({ input }) => input.length)),
  };
}

/** Conversations in memory, shuffled from their original order for every epoch. */
export class ConversationDataset implements Dataset {
  readonly batchesPerEpoch: number;
  readonly #conversations: readonly PlacedConversation[];
  readonly #options: DatasetOptions;
  #rendered: (RenderedRow | undefined)[];
  #keptTokens = 0;
  #order: { readonly epoch: number; readonly rows: Uint32Array } | undefined;

  constructor(conversations: readonly PlacedConversation[], options: DatasetOptions) {
    const { batchSize } = options;
    if (!Number.isSafeInteger(batchSize) || batchSize < 1) {
      throw new ArgumentError("batchSize", `must be an integer of at least 1, not ${batchSize}`);
    }
    if (conversations.length < batchSize) {
      throw new ArgumentError(
        "batchSize",
        `${batchSize} exceeds the number of rows (${conversations.length})`,
      );
    }
    this.#conversations = conversations;
    this.#options = options;
    this.#rendered = Array.from({ length: conversations.length });
    this.batchesPerEpoch = Math.floor(conversations.length / batchSize);
  }

  batch(epoch: number, index: number): readonly Datum[] {
    const { batchSize } = this.#options;
    if (!(index >= 0 && index < this.batchesPerEpoch)) {
      throw new ArgumentError("index", `${index} is not one of ${this.batchesPerEpoch} batches`);
    }
    const rows = this.#orderOf(epoch).subarray(index * batchSize, (index + 1) * batchSize);
    return Array.from(rows, (row) => this.#render(row).data).flat();
  }

  /** The same rows in batches of another size; nothing is rendered again. */
  withBatchSize(batchSize: number): ConversationDataset {
    const other = new ConversationDataset(this.#conversations, { ...this.#options, batchSize });
    other.#rendered = this.#rendered;
    other.#keptTokens = this.#keptTokens;
    return other;
  }

  /** The data of one row. */
  row(index: number): readonly Datum[] {
    return this.#render(index).data;
  }

  /** Renders all rows, and returns the size of the data and the bad rows. */
  inspect(): DataReport {
    const badRows: BadRow[] = [];
    const total = { data: 0, tokens: 0, trainedTokens: 0, longest: 0, truncatedRows: 0 };
    for (const [index, conversation] of this.#conversations.entries()) {
      const place = conversation.place ?? `row ${index + 1}`;
      try {
        const { data, length } = this.#render(index);
        const trained = data.reduce((sum, datum) => sum + countTrained(datum), 0);
        const problem = this.#problemOf(conversation, length, trained);
        if (problem !== undefined) badRows.push({ place, problem });
        total.data += data.length;
        total.tokens += data.reduce((sum, { modelInput }) => sum + modelInput.length, 0);
        total.trainedTokens += trained;
        total.longest = Math.max(total.longest, length);
        if (length > (this.#options.maxLength ?? length)) total.truncatedRows++;
      } catch (error) {
        badRows.push({
          place,
          problem: error instanceof DataError ? error.problem : String(error),
        });
      }
    }
    return { rows: this.#conversations.length, ...total, badRows };
  }

  #problemOf(
    { messages }: Conversation,
    length: number,
    trainedTokens: number,
  ): string | undefined {
    const { maxLength, contextLength = Number.POSITIVE_INFINITY } = this.#options;
    if (maxLength === undefined && length - 1 > contextLength) {
      return `${length} tokens exceed the model's context length (${contextLength}); set maxLength to cut the row`;
    }
    if (trainedTokens > 0) return emptyAnswer(messages);
    const isCut = length > (maxLength ?? length);
    if (isCut) return `no token to learn within the first ${maxLength}`;
    const roles = [...new Set(messages.map(({ role }) => role))];
    if (roles.includes("assistant")) return "no token to learn";
    return `no answer to learn: no message has the role "assistant", only ${roles.join(", ")}`;
  }

  #render(row: number): RenderedRow {
    const known = this.#rendered[row];
    if (known) return known;
    const conversation = this.#conversations[row]!;
    try {
      const rendered = renderRow(conversation, this.#options);
      if (this.#keptTokens < maxKeptTokens) {
        this.#rendered[row] = rendered;
        this.#keptTokens += rendered.length * rendered.data.length;
      }
      return rendered;
    } catch (cause) {
      const problem = cause instanceof DataError ? cause.problem : (cause as Error).message;
      throw new DataError(problem, { place: conversation.place ?? `row ${row + 1}`, cause });
    }
  }

  #orderOf(epoch: number): Uint32Array {
    if (this.#order?.epoch === epoch) return this.#order.rows;
    const { seed = 0, shuffle = true } = this.#options;
    const { length } = this.#conversations;
    const rows = shuffle
      ? permutation(length, seededRandom(seed, epoch))
      : Uint32Array.from({ length }, (_, index) => index);
    this.#order = { epoch, rows };
    return rows;
  }
}

/** Splits off random rows for evaluation; one row or more must be left to train on. */
export function splitTest<T>(
  rows: readonly T[],
  testSize: number,
  seed = 0,
): { readonly train: readonly T[]; readonly test: readonly T[] } {
  if (testSize <= 0) return { train: rows, test: [] };
  if (testSize >= rows.length) {
    const text = `${testSize} leaves no row to train on; the number of rows is ${rows.length}`;
    throw new ArgumentError("testSize", text);
  }
  const order = Array.from(permutation(rows.length, seededRandom(seed)), (index) => rows[index]!);
  return { train: order.slice(testSize), test: order.slice(0, testSize) };
}

/** The number of tokens of a datum with a weight above 0. */
export function countTrained(datum: Datum): number {
  let count = 0;
  for (const weight of Array.from(weightsOf(datum))) if (weight > 0) count++;
  return count;
}

/** The first answer without text or calls; its end would be learned all the same. */
function emptyAnswer(messages: Conversation["messages"]): string | undefined {
  const index = messages.findIndex(
    ({ role, content, toolCalls, trainable }) =>
      role === "assistant" && trainable !== false && !toolCalls?.length && isBlank(content),
  );
  return index < 0 ? undefined : `messages[${index}].content: empty answer`;
}

function isBlank(content: Message["content"]): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content.every((part) => part.type === "text" && part.text.trim() === "");
}

function usesTools({ messages, tools = [] }: Conversation): boolean {
  const isOfTool = ({ role, toolCalls }: Message): boolean =>
    role === "tool" || (toolCalls?.length ?? 0) > 0;
  return tools.length > 0 || messages.some(isOfTool);
}

function withTools(
  { messages, tools }: Conversation,
  renderer: Renderer,
): Conversation["messages"] {
  if (!tools || tools.length === 0) return messages;
  const [first, ...rest] = messages;
  const isSystem = first?.role === "system" && typeof first.content === "string";
  const prefix = isSystem
    ? renderer.createConversationPrefixWithTools(tools, first.content)
    : renderer.createConversationPrefixWithTools(tools);
  return [...prefix, ...(isSystem ? rest : messages)];
}
