import { ArgumentError } from "../errors/argument-error.js";
import { Cursor } from "../schema/cursor.js";
import { ownArray, toInt32Array } from "../schema/typed-lists.js";
import {
  array,
  bytes,
  enumeration,
  integer,
  literal,
  mapped,
  optional,
  strictObject,
  string,
  tagged,
  tokens,
  type FieldInputs,
  type FieldValues,
  type Schema,
  type ValueOf,
} from "../schema/schema.js";
import { firstValues, inspectSymbol } from "./inspect.js";

export const ImageFormat = enumeration(["png", "jpeg"]);
/** Picture formats a model accepts. */
export type ImageFormat = ValueOf<typeof ImageFormat>;

const encodedTextChunk = {
  /** Token ids of the model's tokenizer. */
  tokens,
  /** Marks the kind of chunk. */
  type: literal("encoded_text"),
};

/** A run of token ids. */
export interface EncodedTextChunk extends FieldValues<typeof encodedTextChunk> {}

/** A run of token ids as it may be written. */
export interface EncodedTextChunkInput extends FieldInputs<typeof encodedTextChunk> {}
export const EncodedTextChunk: Schema<EncodedTextChunk, EncodedTextChunkInput> = strictObject(
  "EncodedTextChunk",
  encodedTextChunk,
);

// Clients of 0.4.1 send the size of a picture too, and its length under another name.
const expectedTokens = optional(integer, { since: "0.5.1", oldWireName: "tokens" });
const oldFacts = { ignored: ["height", "width"] };

const imageChunk = {
  /** The bytes of the file. */
  data: bytes,
  /** How the bytes are encoded. */
  format: ImageFormat,
  /** Positions the picture takes in the context; lets the server fail early when it counts differently. */
  expectedTokens,
  /** Marks the kind of chunk. */
  type: literal("image"),
};

/** A picture by its bytes. */
export interface ImageChunk extends FieldValues<typeof imageChunk> {}

/** A picture by its bytes, as it may be written. */
export interface ImageChunkInput extends FieldInputs<typeof imageChunk> {}
export const ImageChunk: Schema<ImageChunk, ImageChunkInput> = strictObject(
  "ImageChunk",
  imageChunk,
  oldFacts,
);

const imageAssetPointerChunk = {
  /** How the picture is encoded. */
  format: ImageFormat,
  /** Where the server finds it. */
  location: string,
  /** Positions the picture takes in the context; lets the server fail early when it counts differently. */
  expectedTokens,
  /** Marks the kind of chunk. */
  type: literal("image_asset_pointer"),
};

/** A picture by its path or URL; for sampling only. */
export interface ImageAssetPointerChunk extends FieldValues<typeof imageAssetPointerChunk> {}

/** A picture by its path or URL, as it may be written. */
export interface ImageAssetPointerChunkInput extends FieldInputs<typeof imageAssetPointerChunk> {}
export const ImageAssetPointerChunk: Schema<ImageAssetPointerChunk, ImageAssetPointerChunkInput> =
  strictObject("ImageAssetPointerChunk", imageAssetPointerChunk, oldFacts);

const dmelChunk = {
  /** The container; its first dimension is the number of frames, one position each. */
  dmel: bytes,
  /** Marks the kind of chunk. */
  type: literal("dmel"),
};

/** Audio frames in a tensor container. */
export interface DmelChunk extends FieldValues<typeof dmelChunk> {}

/** Audio frames as they may be written. */
export interface DmelChunkInput extends FieldInputs<typeof dmelChunk> {}
export const DmelChunk: Schema<DmelChunk, DmelChunkInput> = strictObject("DmelChunk", dmelChunk, {
  since: "0.23.0",
});

export const ModelInputChunk = tagged(
  "ModelInputChunk",
  "type",
  {
    encoded_text: EncodedTextChunk,
    image: ImageChunk,
    image_asset_pointer: ImageAssetPointerChunk,
    dmel: DmelChunk,
  },
  // Clients up to 0.17 send chunks without their type; the fields distinguish them.
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

/** Everything that is accepted as a `ModelInput`. */
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
    const parts: Int32Array[] = [];
    let length = 0;
    for (const [index, chunk] of this.chunks.entries()) {
      if (chunk.type !== "encoded_text") {
        throw new ArgumentError(
          `chunks[${index}]`,
          `toInts() needs text only, but this is a chunk of type ${chunk.type}`,
        );
      }
      parts.push(chunk.tokens);
      length += chunk.tokens.length;
    }
    const result = new Int32Array(length);
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
    if (chunk.tokens instanceof Int32Array) return { tokens: chunk.tokens, type: "encoded_text" };
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

const constantMarker = 0xfe;
const maxDtype = 7;
const maxVarintBytes = 10;

/**
 * Reads the shape at the head of a tensor container, the byte format of audio (dmel) chunks:
 * an optional constant marker, a dtype byte, the number of dimensions and the dimensions as LEB128.
 */
export function readContainerShape(container: Uint8Array): number[] {
  let position = container[0] === constantMarker ? 1 : 0;
  const dtype = container[position++];
  if (dtype === undefined) throw new ArgumentError("dmel", "the tensor container is empty");
  if (dtype > maxDtype) throw new ArgumentError("dmel", `unknown container dtype ${dtype}`);

  const readVarint = (): number => {
    let value = 0n;
    for (let count = 0; count < maxVarintBytes; count++) {
      const byte = container[position++];
      if (byte === undefined) throw new ArgumentError("dmel", "the container header is truncated");
      value |= BigInt(byte & 0x7f) << BigInt(7 * count);
      if ((byte & 0x80) === 0) return toDimension(value);
    }
    throw new ArgumentError("dmel", "a number in the container header is longer than 10 bytes");
  };

  const rank = readVarint();
  if (rank > container.length) {
    throw new ArgumentError("dmel", "the container header is truncated");
  }
  return Array.from({ length: rank }, readVarint);
}

function toDimension(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new ArgumentError("dmel", `the container dimension ${value} is too large`);
  }
  return Number(value);
}
