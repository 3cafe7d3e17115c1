import type { Datum } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { writeDocument, type Split } from "./corpus/documents.js";

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

/** The batch that begins with a document; every token of it has the same weight, in sum one. */
export function makeBatch(
  tokenizer: Tokenizer,
  split: Split,
  firstDocument: number,
  batchTokens: number,
  contextLength: number,
): Batch {
  const sequences: Int32Array[] = [];
  let tokens = 0;
  let nats = 0;
  let document = firstDocument;
  while (tokens < batchTokens) {
    const written = writeDocument(split, document++);
    const ids = tokenizer.encode(written.text, { addSpecialTokens: false });
    // A cut document would be less informative than its choices say.
    if (ids.length > contextLength + 1) continue;
    sequences.push(ids);
    tokens += ids.length - 1;
    nats += written.nats;
  }
  const data = sequences.map((ids) => nextTokenDatum(ids, 1 / tokens));
  return { data, tokens, nextDocument: document, nats };
}

function nextTokenDatum(ids: Int32Array, weight: number): Datum {
  const shape = [ids.length - 1];
  return {
    tokens: ids.subarray(0, -1),
    inputs: {
      target_tokens: { data: ids.subarray(1), shape },
      weights: { data: new Float32Array(ids.length - 1).fill(weight), shape },
    },
  };
}
