import { int64Size, writeInt64 } from "./packed.js";

const varint = 0;
const fixed64 = 1;
const lengthDelimited = 2;

const encoder = new TextEncoder();

/**
 * A piece of a message: one number, a text of one byte a letter, bytes, a nested message, or integers that are widened
 * while writing.
 */
type Part = number | string | Uint8Array | MessageWriter | Int32Array | BigInt64Array;

/** Texts up to this length are looked at letter by letter. */
const shortLength = 64;

/** Empty is the default of a plain field and not sent; it means something where presence counts. */
export type WhenEmpty = "skip" | "send";

/**
 * Builds a protobuf message whose size is known before a byte of it is written, so that nested
 * messages are never copied: `finish` allocates once and writes everything to its final place.
 * A message must be complete when it is added to its parent.
 */
export class MessageWriter {
  readonly #parts: Part[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A non-negative integer; zero is the default and not sent. */
  uint(field: number, value: number): this {
    return value === 0 ? this : this.presentUint(field, value);
  }

  /** A non-negative integer that is sent even when it is zero. */
  presentUint(field: number, value: number): this {
    this.#addHead(field, varint, value);
    return this;
  }

  bool(field: number, value: boolean): this {
    return this.uint(field, value ? 1 : 0);
  }

  string(field: number, text: string): this {
    if (!isShortAscii(text)) return this.bytes(field, encoder.encode(text));
    if (text === "") return this;
    this.#addHead(field, lengthDelimited, text.length);
    return this.#add(text, text.length);
  }

  /** Bytes; the array is read when the message is written. */
  bytes(field: number, bytes: Uint8Array, whenEmpty: WhenEmpty = "skip"): this {
    if (bytes.byteLength === 0 && whenEmpty === "skip") return this;
    this.#addHead(field, lengthDelimited, bytes.byteLength);
    return this.#add(bytes, bytes.byteLength);
  }

  /** Integers as packed little-endian int64 in a bytes field. */
  int64Bytes(
    field: number,
    values: Int32Array | BigInt64Array,
    whenEmpty: WhenEmpty = "skip",
  ): this {
    if (values.length === 0 && whenEmpty === "skip") return this;
    this.#addHead(field, lengthDelimited, int64Size(values));
    return this.#add(values, int64Size(values));
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
    const target = new Uint8Array(this.#size);
    this.write(target, 0);
    return target;
  }

  /** Like `finish`, but lets `pause` decide about other work after every `sliceBytes` or so. */
  async finishInSlices(
    sliceBytes: number,
    pause: () => Promise<void>,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const target = new Uint8Array(this.#size);
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
    this.#size += size;
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
  return offset + int64Size(part);
}

function isShortAscii(text: string): boolean {
  if (text.length > shortLength) return false;
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= 0x80) return false;
  }
  return true;
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
