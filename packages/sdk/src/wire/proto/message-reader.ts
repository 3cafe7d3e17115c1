/** A message that is not well formed. */
class MalformedMessage extends Error {}

const utf8 = new TextDecoder("utf-8", { fatal: true });
const [varint, fixed64, delimited, fixed32] = [0, 1, 2, 5];

/** Texts up to this length are looked at letter by letter: names are short. */
const shortLength = 32;

/** A kind of message: what one without fields is, and how each field is read into it, by its number. */
export interface MessageForm<T> {
  readonly empty: () => T;
  readonly fields: Readonly<Record<number, (reader: MessageReader, message: T) => void>>;
}

/** Reads a message. */
export function readMessage<T>(bytes: Uint8Array, form: MessageForm<T>): T {
  return new MessageReader(bytes).read(form);
}

/**
 * Reads a protobuf message field by field. Values of bytes are views on the message, nothing is copied; fields
 * that nobody asks for, or that come in another form than expected, are skipped.
 */
export class MessageReader {
  readonly #bytes: Uint8Array;
  #position = 0;
  /** Where the message ends that is being read: the whole one, or one inside. */
  #limit: number;
  #form = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#limit = bytes.length;
  }

  /** Reads what is left, with the reader of every field that has one. */
  read<T>({ empty, fields }: MessageForm<T>): T {
    const message = empty();
    while (this.#position < this.#limit) {
      const tag = this.#varint32() >>> 0;
      this.#form = tag & 7;
      const start = this.#position;
      fields[tag >>> 3]?.(this, message);
      if (this.#position === start) this.#skip();
    }
    return message;
  }

  /** A signed 32-bit number, a boolean or an enumeration. */
  int32(set: (value: number) => void): void {
    if (this.#form === varint) set(this.#varint32());
  }

  /** An unsigned 32-bit number. */
  uint32(set: (value: number) => void): void {
    if (this.#form === varint) set(this.#varint32() >>> 0);
  }

  /** A signed 64-bit number, or a packed list of them: called for each. */
  int64(add: (value: bigint) => void): void {
    if (this.#form === varint) return add(this.#varint64());
    if (this.#form !== delimited) return;
    const end = this.#end();
    while (this.#position < end) add(this.#varint64());
    if (this.#position > end) throw new MalformedMessage("a packed list is cut off");
  }

  /** A double. */
  double(set: (value: number) => void): void {
    if (this.#form !== fixed64) return;
    this.#need(8);
    const { buffer, byteOffset } = this.#bytes;
    const value = new DataView(buffer, byteOffset + this.#position, 8).getFloat64(0, true);
    this.#position += 8;
    set(value);
  }

  /** Bytes, as a view on the message. */
  bytes(set: (value: Uint8Array) => void): void {
    if (this.#form !== delimited) return;
    const end = this.#end();
    const value = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    set(value);
  }

  /** Text. */
  string(set: (value: string) => void): void {
    this.bytes((value) => set(textOf(value)));
  }

  /** A message inside. */
  message<T>(form: MessageForm<T>, set: (value: T) => void): void {
    if (this.#form !== delimited) return;
    const end = this.#end();
    const outer = this.#limit;
    this.#limit = end;
    const value = this.read(form);
    this.#limit = outer;
    set(value);
  }

  #skip(): void {
    if (this.#form === varint) this.#varint64();
    else if (this.#form === delimited) this.#position = this.#end();
    else if (this.#form === fixed64) this.#position += this.#need(8);
    else if (this.#form === fixed32) this.#position += this.#need(4);
    else throw new MalformedMessage(`unknown wire type ${this.#form}`);
  }

  #end(): number {
    const length = this.#varint32() >>> 0;
    this.#need(length);
    return this.#position + length;
  }

  #need(count: number): number {
    if (this.#position + count > this.#limit) {
      throw new MalformedMessage("the message is cut off");
    }
    return count;
  }

  /** The low 32 bits; negative numbers come in ten bytes. */
  #varint32(): number {
    let value = 0;
    for (let index = 0; index < 10; index++) {
      this.#need(1);
      const byte = this.#bytes[this.#position++]!;
      if (index < 5) value |= (byte & 0x7f) << (7 * index);
      if (byte < 0x80) return value;
    }
    throw new MalformedMessage("a number is longer than ten bytes");
  }

  #varint64(): bigint {
    let value = 0n;
    for (let index = 0; index < 10; index++) {
      this.#need(1);
      const byte = this.#bytes[this.#position++]!;
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new MalformedMessage("a number is longer than ten bytes");
  }
}

function textOf(bytes: Uint8Array): string {
  if (bytes.length > shortLength) return utf8.decode(bytes);
  let text = "";
  for (const byte of bytes) {
    if (byte >= 0x80) return utf8.decode(bytes);
    text += String.fromCharCode(byte);
  }
  return text;
}
