import type { JsonFields } from "../files/json-fields.js";
import { isObject } from "../files/json.js";
import {
  byteFallbackStage,
  byteLevelStage,
  type DecoderStage,
  metaspaceStage,
  type PieceSink,
  replaceStage,
  stripStartStage,
  wordsStage,
} from "./decoder-stages.js";
import { tokenizerFields } from "./tokenizer-fields.js";

/** The conversion of a vocabulary's tokens to text, as `tokenizer.json` describes it. */
export class TokenDecoder {
  readonly #stages: readonly DecoderStage[];

  /** Reads the field `decoder`; unsupported decoders are rejected by name. */
  constructor(decoderJson: unknown) {
    this.#stages = parseStages(decoderJson ?? null, false).stages;
  }

  /** Starts a text; `emit` is called with each part of it as soon as it is final. */
  start(emit: (text: string) => void): PieceSink {
    const last: PieceSink = { push: emit, end: () => undefined };
    return this.#stages.reduceRight((next, stage) => stage.start(next), last);
  }

  /** The bytes of UTF-8 that a token adds in the middle of a text. */
  bytesOf(token: string): Uint8Array {
    let piece = token;
    for (const stage of this.#stages) {
      const inner = stage.inner(piece);
      if (typeof inner !== "string") return inner;
      piece = inner;
    }
    return Buffer.from(piece);
  }
}

interface ParsedStages {
  readonly stages: DecoderStage[];
  /** From here on the pieces are parts of one text, not tokens. */
  readonly fused: boolean;
}

function parseStages(json: unknown, fused: boolean): ParsedStages {
  if (json === null) return { stages: [wordsStage], fused };
  const fields = tokenizerFields(json, '"decoder"');
  const type = fields.string("type");
  switch (type) {
    case "ByteLevel":
      return { stages: [byteLevelStage], fused: true };
    case "ByteFallback":
      return { stages: [byteFallbackStage], fused };
    case "Fuse":
      return { stages: [], fused: true };
    case "Metaspace":
      return { stages: [parseMetaspace(fields)], fused };
    case "Replace":
      return { stages: [parseReplace(fields)], fused };
    case "Strip":
      return { stages: [parseStrip(fields, fused)], fused };
    case "Sequence":
      return parseSequence(fields, fused);
    default:
      throw fields.refuse(
        "type",
        "supported are ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip and Sequence",
      );
  }
}

function parseSequence(fields: JsonFields, fused: boolean): ParsedStages {
  const parts = fields.get("decoders");
  if (!Array.isArray(parts)) throw fields.refuse("decoders", "must be a list");
  const parsed: ParsedStages = { stages: [], fused };
  return parts.reduce<ParsedStages>((before, part: unknown) => {
    const { stages, fused: after } = parseStages(part, before.fused);
    return { stages: [...before.stages, ...stages], fused: after };
  }, parsed);
}

function parseMetaspace(fields: JsonFields): DecoderStage {
  const sign = fields.string("replacement", "▁");
  // Files from before `prepend_scheme` existed have `add_prefix_space`.
  const scheme = fields.boolean("add_prefix_space", true) ? "always" : "never";
  return metaspaceStage(sign, fields.string("prepend_scheme", scheme) !== "never");
}

function parseReplace(fields: JsonFields): DecoderStage {
  const pattern = fields.get("pattern");
  const text = isObject(pattern) ? pattern["String"] : undefined;
  if (typeof text !== "string") throw fields.refuse("pattern", "only a fixed text is supported");
  return replaceStage(text, fields.string("content"));
}

function parseStrip(fields: JsonFields, fused: boolean): DecoderStage {
  if (!fused) throw fields.refuse("type", "it is supported only after Fuse");
  if (fields.integer("stop", 0, 0) > 0) {
    throw fields.refuse("stop", "characters can be stripped only from the start of a text");
  }
  return stripStartStage(fields.string("content"), fields.integer("start", 0, 0));
}

/**
 * Turns a growing list of tokens into a growing text.
 *
 * - `push` returns the text that has become final; it may be empty.
 * - A character split over several tokens appears with the last one, never in part.
 * - The deltas and the flushed rest, joined, equal the text of all tokens decoded at once.
 */
export class IncrementalDecoder {
  readonly #sink: PieceSink;
  readonly #tokenOf: (id: number) => string | null;
  #delta = "";

  /** `tokenOf` names the token of an id; null for one that leaves no text. */
  constructor(decoder: TokenDecoder, tokenOf: (id: number) => string | null) {
    this.#tokenOf = tokenOf;
    this.#sink = decoder.start((text) => {
      this.#delta += text;
    });
  }

  /** Adds a token, or several, and returns the text that they complete. */
  push(ids: number | Iterable<number>): string {
    for (const id of typeof ids === "number" ? [ids] : ids) {
      const token = this.#tokenOf(id);
      if (token !== null) this.#sink.push(token);
    }
    return this.#take();
  }

  /** Ends the text and returns the held-back text; an unfinished character is replaced by U+FFFD. */
  flush(): string {
    this.#sink.end();
    return this.#take();
  }

  #take(): string {
    const delta = this.#delta;
    this.#delta = "";
    return delta;
  }
}
