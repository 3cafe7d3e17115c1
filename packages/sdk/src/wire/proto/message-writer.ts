const varint = 0;
const fixed64 = 1;
const lengthDelimited = 2;

const encoder = new TextEncoder();

/**
 * A piece of a message: one number, a text of one byte a letter, bytes, a nested message, or integers that are widened
 * while writing.
 */
type Part = number | string | Uint8Array | MessageWriter | Int32Array | BigInt64Array;

/** Texts that are written letter by letter. */
const shortAscii = /^[ -~]{0,64}$/;

/** Empty is the default of a plain field and not sent; it means something where presence counts. */
export type WhenEmpty = "skip" | "send";

/**
 * Builds a protobuf message, with its size known before a byte of it is written, so that nested
 * messages are never copied: `finish` allocates once and writes everything to its final place.
 * A message must be complete when it is added to its parent.
 */
export class MessageWriter {
  readonly #parts: Part[] = [];
  size = 0;

  /** A non-negative integer or a boolean; zero is the default. */
  uint(field: number, value: number, whenEmpty: WhenEmpty = "skip"): this {
    if (value !== 0 || whenEmpty === "send") this.#addHead(field, varint, value);
    return this;
  }

  string(field: number, text: string): this {
    if (!shortAscii.test(text)) return this.bytes(field, encoder.encode(text));
    if (text === "") return this;
    this.#addHead(field, lengthDelimited, text.length);
    return this.#add(text, text.length);
  }

  /** Bytes, or integers as packed little-endian int64; the array is read when the message is written. */
  bytes(
    field: number,
    values: Uint8Array | Int32Array | BigInt64Array,
    whenEmpty: WhenEmpty = "skip",
  ): this {
    if (values.length === 0 && whenEmpty === "skip") return this;
    const size = values instanceof Uint8Array ? values.length : values.length * 8;
    this.#addHead(field, lengthDelimited, size);
    return this.#add(values, size);
  }

  double(field: number, value: number): this {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value, true);
    this.#addHead(field, fixed64);
    return this.#add(bytes, 8);
  }

  message(field: number, message: MessageWriter): this {
    this.#addHead(field, lengthDelimited, message.size);
    return this.#add(message, message.size);
  }

  /** A packed repeated field of non-negative integers. */
  packedUints(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    let size = 0;
    for (const value of values) size += varintSize(value);
    this.#addHead(field, lengthDelimited, size);
    for (const value of values) this.#add(value, varintSize(value));
    return this;
  }

  /** The finished message. */
  finish(): Uint8Array<ArrayBuffer> {
    const target = new Uint8Array(this.size);
    this.write(target, 0);
    return target;
  }

  /** Like `finish`, but lets `pause` decide about other work after every `sliceBytes` or so. */
  async finishInSlices(
    sliceBytes: number,
    pause: () => Promise<void>,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const target = new Uint8Array(this.size);
    let offset = 0;
    let sliceEnd = sliceBytes;
    for (const part of this.#parts) {
      if (offset >= sliceEnd) {
        await pause();
        sliceEnd = offset + sliceBytes;
      }
      offset = writePart(part, target, offset);
    }
    return target;
  }

  #addHead(field: number, wireType: number, value?: number): void {
    const tag = field * 8 + wireType;
    this.#add(tag, varintSize(tag));
    if (value !== undefined) this.#add(value, varintSize(value));
  }

  #add(part: Part, size: number): this {
    this.#parts.push(part);
    this.size += size;
    return this;
  }

  /** Writes the message at `start` and returns where it ends. */
  write(target: Uint8Array, start: number): number {
    let offset = start;
    for (const part of this.#parts) offset = writePart(part, target, offset);
    return offset;
  }
}

function writePart(part: Part, target: Uint8Array, offset: number): number {
  if (typeof part === "number") return writeVarint(part, target, offset);
  if (typeof part === "string") {
    for (let index = 0; index < part.length; index++) {
      target[offset + index] = part.charCodeAt(index);
    }
    return offset + part.length;
  }
  if (part instanceof MessageWriter) return part.write(target, offset);
  if (part instanceof Uint8Array) {
    target.set(part, offset);
    return offset + part.byteLength;
  }
  writeInt64(part, target, offset);
  return offset + part.length * 8;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

function writeVarint(value: number, target: Uint8Array, start: number): number {
  let offset = start;
  let rest = value;
  while (rest >= 0x80) {
    target[offset++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[offset++] = rest;
  return offset;
}

const scratch = new Int32Array(16 * 1024);
const scratchBytes = new Uint8Array(scratch.buffer);

/** Writes integers as int64 at `offset`; 32-bit storage is widened in small aligned pieces. */
function writeInt64(values: Int32Array | BigInt64Array, target: Uint8Array, offset: number): void {
  if (values instanceof BigInt64Array) {
    const { buffer, byteOffset, byteLength } = values;
    target.set(new Uint8Array(buffer, byteOffset, byteLength), offset);
    return;
  }
  const perPiece = scratch.length / 2;
  for (let start = 0; start < values.length; start += perPiece) {
    const count = Math.min(perPiece, values.length - start);
    for (let index = 0; index < count; index++) {
      const value = values[start + index]!;
      scratch[index * 2] = value;
      scratch[index * 2 + 1] = value >> 31;
    }
    target.set(scratchBytes.subarray(0, count * 8), offset + start * 8);
  }
}
