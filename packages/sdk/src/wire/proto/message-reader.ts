/** A message that is not well formed. */
class MalformedMessage extends Error {}

const utf8 = new TextDecoder("utf-8", { fatal: true });
const [varint, fixed64, delimited, fixed32] = [0, 1, 2, 5];

/** How a field is read once its number is known. */
export type FieldReaders = Readonly<Record<number, (reader: MessageReader) => void>>;

/**
 * Reads a protobuf message field by field. Values of bytes are views on the message, nothing is copied; fields
 * that nobody asks for, or that come in another form than expected, are skipped.
 */
export class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position = 0;
  #form = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Calls the reader of every field that has one. */
  read(fields: FieldReaders): void {
    while (this.#position < this.#bytes.length) {
      const tag = this.#varint32() >>> 0;
      this.#form = tag & 7;
      const start = this.#position;
      fields[tag >>> 3]?.(this);
      if (this.#position === start) this.#skip();
    }
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
    const value = this.#view.getFloat64(this.#position, true);
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
    this.bytes((value) => set(utf8.decode(value)));
  }

  /** A message inside. */
  message<T>(read: (bytes: Uint8Array) => T, set: (value: T) => void): void {
    this.bytes((value) => set(read(value)));
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
    if (this.#position + count > this.#bytes.length) {
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
