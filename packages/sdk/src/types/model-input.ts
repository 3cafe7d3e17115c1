import { ArgumentError } from "../errors/argument-error.js";
import { Cursor } from "../schema/cursor.js";
import {
  array,
  bytes,
  describedBy,
  enumeration,
  integer,
  literal,
  mapped,
  optional,
  strictObject,
  string,
  tagged,
  tokens,
  type Omittable,
  type ValueOf,
} from "../schema/schema.js";
import { ownArray } from "../schema/own-array.js";
import { toInt32Array } from "../schema/typed-lists.js";
import { firstValues, inspectSymbol } from "./inspect.js";
import { readContainerShape } from "./tensor-container.js";

export const ImageFormat = enumeration(["png", "jpeg"]);
/** Picture formats a model accepts. */
export type ImageFormat = ValueOf<typeof ImageFormat>;

/** A run of token ids. */
export interface EncodedTextChunk {
  /** Token ids of the model's tokenizer. */
  tokens: Int32Array;
  /** Marks the kind of chunk. */
  type: "encoded_text";
}

/** A run of token ids as it may be written. */
export interface EncodedTextChunkInput extends Omittable<Omit<EncodedTextChunk, "tokens">, "type"> {
  /** Token ids of the model's tokenizer. */
  tokens: Int32Array | readonly number[];
}

export const EncodedTextChunk = describedBy<EncodedTextChunk, EncodedTextChunkInput>()(
  strictObject("EncodedTextChunk", {
    tokens,
    type: literal("encoded_text"),
  }),
);

// Clients of 0.4.1 send the size of a picture too, and its length under another name.
const expectedTokens = optional(integer, { since: "0.5.1", oldWireName: "tokens" });
const oldFacts = { ignored: ["height", "width"] };

/** A picture by its bytes. */
export interface ImageChunk {
  /** The bytes of the file. */
  data: Uint8Array;
  /** How the bytes are encoded. */
  format: ImageFormat;
  /** Positions the picture takes in the context; lets the server fail early when it counts differently. */
  expectedTokens: number | null;
  /** Marks the kind of chunk. */
  type: "image";
}

/** A picture by its bytes, as it may be written. */
export interface ImageChunkInput extends Omittable<ImageChunk, "expectedTokens" | "type"> {}

export const ImageChunk = describedBy<ImageChunk, ImageChunkInput>()(
  strictObject(
    "ImageChunk",
    { data: bytes, format: ImageFormat, expectedTokens, type: literal("image") },
    oldFacts,
  ),
);

/** A picture by its path or URL; for sampling only. */
export interface ImageAssetPointerChunk {
  /** How the picture is encoded. */
  format: ImageFormat;
  /** Where the server finds it. */
  location: string;
  /** Positions the picture takes in the context; lets the server fail early when it counts differently. */
  expectedTokens: number | null;
  /** Marks the kind of chunk. */
  type: "image_asset_pointer";
}

/** A picture by its path or URL, as it may be written. */
export interface ImageAssetPointerChunkInput extends Omittable<
  ImageAssetPointerChunk,
  "expectedTokens" | "type"
> {}

export const ImageAssetPointerChunk = describedBy<
  ImageAssetPointerChunk,
  ImageAssetPointerChunkInput
>()(
  strictObject(
    "ImageAssetPointerChunk",
    { format: ImageFormat, location: string, expectedTokens, type: literal("image_asset_pointer") },
    oldFacts,
  ),
);

/** Audio frames in a tensor container. */
export interface DmelChunk {
  /** The container; its first dimension is the number of frames, one position each. */
  dmel: Uint8Array;
  /** Marks the kind of chunk. */
  type: "dmel";
}

/** Audio frames as they may be written. */
export interface DmelChunkInput extends Omittable<DmelChunk, "type"> {}

export const DmelChunk = describedBy<DmelChunk, DmelChunkInput>()(
  strictObject("DmelChunk", { dmel: bytes, type: literal("dmel") }, { since: "0.23.0" }),
);

export const ModelInputChunk = tagged(
  "ModelInputChunk",
  "type",
  {
    encoded_text: EncodedTextChunk,
    image: ImageChunk,
    image_asset_pointer: ImageAssetPointerChunk,
    dmel: DmelChunk,
  },
  // Clients up to 0.17 send chunks without their type; the fields tell them apart.
  (fields) => {
    if ("tokens" in fields && !("format" in fields)) return "encoded_text";
    if ("location" in fields) return "image_asset_pointer";
    if ("data" in fields) return "image";
    return "dmel" in fields ? "dmel" : undefined;
  },
);
/** One piece of a prompt. */
export type ModelInputChunk = EncodedTextChunk | ImageChunk | ImageAssetPointerChunk | DmelChunk;
/** A piece of a prompt as it may be written: `type` may be left out, token lists may be plain. */
export type ModelInputChunkInput =
  | EncodedTextChunkInput
  | ImageChunkInput
  | ImageAssetPointerChunkInput
  | DmelChunkInput;

/** Everything that can stand for a `ModelInput`. */
export type ModelInputLike = ModelInput | Int32Array | readonly number[] | ModelInputInit;

/** A `ModelInput` in its plain form. */
export interface ModelInputInit {
  /** The pieces, in order. */
  readonly chunks: readonly ModelInputChunkInput[];
}

/** What a model reads: pieces of text, pictures and audio in order. Immutable. */
export class ModelInput {
  /** The pieces, in order. */
  readonly chunks: readonly ModelInputChunk[];

  constructor(init: ModelInputInit) {
    this.chunks = init.chunks.map(completeChunk);
  }

  /** One text piece from token ids. */
  static fromInts(tokenIds: Int32Array | readonly number[]): ModelInput {
    return new ModelInput({ chunks: [{ type: "encoded_text", tokens: tokenIds }] });
  }

  /** An input without pieces. */
  static empty(): ModelInput {
    return new ModelInput({ chunks: [] });
  }

  /** Takes a `ModelInput`, its plain form or token ids. */
  static from(given: ModelInputLike): ModelInput {
    const value = ownArray(given);
    if (value instanceof ModelInput) return value;
    if (value instanceof Int32Array || isList(value)) return ModelInput.fromInts(value);
    if (typeof value === "object" && value !== null && Array.isArray(value.chunks)) {
      return new ModelInput(value);
    }
    throw new ArgumentError(
      "",
      typeof value === "string"
        ? "text must be encoded first: pass the token ids of tokenizer.encode(text)"
        : "must be token ids, a ModelInput or { chunks }",
    );
  }

  /** Plain lists, for logs and files. */
  toJSON(): { readonly chunks: readonly Readonly<Record<string, unknown>>[] } {
    return {
      chunks: this.chunks.map((chunk) => {
        if (chunk.type === "encoded_text") return { ...chunk, tokens: [...chunk.tokens] };
        if (chunk.type === "image") return { ...chunk, data: `${chunk.data.byteLength} bytes` };
        if (chunk.type === "dmel") return { ...chunk, dmel: `${chunk.dmel.byteLength} bytes` };
        return { ...chunk };
      }),
    };
  }

  /** How it is printed. */
  [inspectSymbol](): string {
    const pieces = this.chunks.map((chunk) =>
      chunk.type === "encoded_text"
        ? `${chunk.tokens.length} tokens: ${firstValues(chunk.tokens)}`
        : chunk.type,
    );
    return `ModelInput(${pieces.join("; ")})`;
  }

  /** All token ids in order; throws when a piece is not text. */
  toInts(): Int32Array {
    const parts = this.chunks.map((chunk, index) => {
      if (chunk.type === "encoded_text") return chunk.tokens;
      throw new ArgumentError(
        `chunks[${index}]`,
        `toInts() needs text only, but this is a chunk of type ${chunk.type}`,
      );
    });
    const result = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let offset = 0;
    for (const part of parts) {
      result.set(part, offset);
      offset += part.length;
    }
    return result;
  }

  /** Positions in the model's context; throws when a picture does not say how many it takes. */
  get length(): number {
    return this.chunks.reduce((sum, chunk, index) => sum + chunkLength(chunk, index), 0);
  }

  /** A new input with one more piece at the end. */
  append(chunk: ModelInputChunkInput): ModelInput {
    return new ModelInput({ chunks: [...this.chunks, chunk] });
  }

  /** A new input with one more token at the end, joined to a final text piece. */
  appendInt(token: number): ModelInput {
    const last = this.chunks.at(-1);
    if (last?.type !== "encoded_text") {
      return this.append({ type: "encoded_text", tokens: [token] });
    }
    const longer = new Int32Array(last.tokens.length + 1);
    longer.set(last.tokens);
    longer.set(toInt32Array([token], new Cursor("encode", "ModelInput")), last.tokens.length);
    return new ModelInput({
      chunks: [...this.chunks.slice(0, -1), { type: "encoded_text", tokens: longer }],
    });
  }
}

export const ModelInputSchema = mapped<
  ModelInput,
  ModelInputLike,
  { chunks: ModelInputChunk[] },
  { chunks: readonly ModelInputChunkInput[] }
>("ModelInput", strictObject("ModelInput", { chunks: array(ModelInputChunk) }), {
  wrap: (inner) => new ModelInput(inner),
  unwrap: (value) => ({ chunks: ModelInput.from(value).chunks }),
});

function completeChunk(chunk: ModelInputChunkInput): ModelInputChunk {
  if ("tokens" in chunk) {
    const cursor = new Cursor("encode", "ModelInput");
    return { tokens: toInt32Array(chunk.tokens, cursor), type: "encoded_text" };
  }
  if ("dmel" in chunk) return { ...chunk, type: "dmel" };
  const expected = chunk.expectedTokens ?? null;
  if ("location" in chunk) {
    return { ...chunk, expectedTokens: expected, type: "image_asset_pointer" };
  }
  return { ...chunk, expectedTokens: expected, type: "image" };
}

function chunkLength(chunk: ModelInputChunk, index: number): number {
  switch (chunk.type) {
    case "encoded_text":
      return chunk.tokens.length;
    case "dmel": {
      const [frames] = readContainerShape(chunk.dmel);
      if (frames === undefined) {
        throw new ArgumentError(`chunks[${index}].dmel`, "the tensor container has no dimension");
      }
      return frames;
    }
    default:
      if (chunk.expectedTokens !== null) return chunk.expectedTokens;
      throw new ArgumentError(
        `chunks[${index}].expectedTokens`,
        "set it to know the length of an input with pictures",
      );
  }
}

function isList(value: ModelInputLike): value is readonly number[] {
  return Array.isArray(value);
}
