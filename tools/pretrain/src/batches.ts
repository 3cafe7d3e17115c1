import type { Datum } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { writeDocument, type Split } from "./corpus/documents.js";
import type { Passage } from "./corpus/passage.js";

/** Documents that are trained on together. */
export interface Batch {
  readonly data: readonly Datum[];
  /** Tokens that are predicted. */
  readonly tokens: number;
  /** The document after the last one of the batch. */
  readonly nextDocument: number;
  /** Information of the documents: the least that can be lost on them. */
  readonly nats: number;
}

/** What a token that is merely read counts for, beside one that is taught. */
const readWeight = 0.1;

/**
 * The batch that begins with a document. Weights add up to one: "taught" gives more of it to what is there
 * to be learned, "all" the same to every token, as it is measured.
 */
export function makeBatch(
  tokenizer: Tokenizer,
  split: Split,
  firstDocument: number,
  options: {
    readonly batchTokens: number;
    readonly contextLength: number;
    readonly weights: "taught" | "all";
  },
): Batch {
  const sequences: Sequence[] = [];
  let tokens = 0;
  let nats = 0;
  let document = firstDocument;
  while (tokens < options.batchTokens) {
    const written = writeDocument(split, document++);
    const sequence = encode(
      tokenizer,
      written.passages,
      options.weights === "all" ? 1 : readWeight,
    );
    // A cut document would be less informative than its choices say.
    if (sequence.ids.length > options.contextLength + 1) continue;
    sequences.push(sequence);
    tokens += sequence.ids.length - 1;
    nats += written.nats;
  }
  const total = sequences.reduce((sum, { weights }) => sum + sumOf(weights.subarray(1)), 0);
  const data = sequences.map((sequence) => nextTokenDatum(sequence, 1 / total));
  return { data, tokens, nextDocument: document, nats };
}

interface Sequence {
  readonly ids: Int32Array;
  readonly weights: Float32Array;
}

/** Passages begin and end where tokens do. */
function encode(
  tokenizer: Tokenizer,
  passages: readonly Passage[],
  unlessTaught: number,
): Sequence {
  const parts = passages.map(({ text, taught }) => {
    const ids = tokenizer.encode(text, { addSpecialTokens: false });
    return { ids, weights: new Float32Array(ids.length).fill(taught ? 1 : unlessTaught) };
  });
  return {
    ids: Int32Array.from(parts.flatMap(({ ids }) => [...ids])),
    weights: Float32Array.from(parts.flatMap(({ weights }) => [...weights])),
  };
}

function nextTokenDatum({ ids, weights }: Sequence, scale: number): Datum {
  const shape = [ids.length - 1];
  return {
    tokens: ids.subarray(0, -1),
    inputs: {
      target_tokens: { data: ids.subarray(1), shape },
      weights: { data: weights.subarray(1).map((weight) => weight * scale), shape },
    },
  };
}

function sumOf(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0);
}
