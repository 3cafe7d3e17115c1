import { setOwn } from "../../schema/set-own.js";

/** A message that is not well formed. */
class MalformedMessage extends Error {}

const utf8 = new TextDecoder("utf-8", { fatal: true });
const [varint, fixed64, delimited, fixed32] = [0, 1, 2, 5];

/** Shorter texts are decoded character by character: names are short. */
const shortLength = 32;

/** Called with the number of a field that its message does not have. */
export type OnUnknownField = (number: number) => void;

/**
 * Reads a protobuf message field by field: `next` goes to a field, then one method reads or skips it. Byte values are
 * views on the message. A field in another form than expected is skipped and reads as undefined.
 */
export class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #onUnknown: OnUnknownField | undefined;
  #position = 0;
  /** The end of the message or of the nested one that is being read. */
  #limit: number;
  #form = 0;

  constructor(bytes: Uint8Array, onUnknown?: OnUnknownField) {
    this.#bytes = bytes;
    this.#onUnknown = onUnknown;
    this.#limit = bytes.length;
  }

  /** Goes to the next field and returns its number; -1 at the end of the message. */
  next(): number {
    if (this.#position >= this.#limit) return -1;
    const tag = this.#varint32() >>> 0;
    this.#form = tag & 7;
    return tag >>> 3;
  }

  /** A signed 32-bit number, a boolean or an enumeration. */
  int32(): number | undefined {
    return this.#form === varint ? this.#varint32() : this.skip();
  }

  /** An unsigned 32-bit number. */
  uint32(): number | undefined {
    return this.#form === varint ? this.#varint32() >>> 0 : this.skip();
  }

  /** A signed 64-bit number. */
  int64(): bigint | undefined {
    return this.#form === varint ? this.#varint64() : this.skip();
  }

  /** A signed 64-bit number of a repeated field, or a packed list of them. */
  int64s(values: bigint[]): void {
    if (this.#form === varint) values.push(this.#varint64());
    else if (this.#form === delimited) {
      const end = this.#end();
      while (this.#position < end) values.push(this.#varint64());
      if (this.#position > end) throw new MalformedMessage("a packed list is cut off");
    } else this.skip();
  }

  /** A double. */
  double(): number | undefined {
    if (this.#form !== fixed64) return this.skip();
    this.#need(8);
    const { buffer, byteOffset } = this.#bytes;
    const value = new DataView(buffer, byteOffset + this.#position, 8).getFloat64(0, true);
    this.#position += 8;
    return value;
  }

  /** Bytes, as a view on the message. */
  bytes(): Uint8Array | undefined {
    if (this.#form !== delimited) return this.skip();
    const end = this.#end();
    const value = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return value;
  }

  /** Text. */
  string(): string | undefined {
    const bytes = this.bytes();
    if (bytes === undefined || bytes.length > shortLength) return bytes && utf8.decode(bytes);
    let text = "";
    for (const byte of bytes) {
      if (byte >= 0x80) return utf8.decode(bytes);
      text += String.fromCharCode(byte);
    }
    return text;
  }

  /** A nested message. */
  message<T>(read: (reader: MessageReader) => T): T | undefined {
    if (this.#form !== delimited) return this.skip();
    const end = this.#end();
    const outer = this.#limit;
    this.#limit = end;
    const value = read(this);
    this.#limit = outer;
    return value;
  }

  /** A repeated nested message, added to `list`. */
  messages<T>(list: T[], read: (reader: MessageReader) => T): void {
    const message = this.message(read);
    if (message !== undefined) list.push(message);
  }

  /** An entry of a map, put into `map`: of messages, or of doubles without `read`. A missing value is `empty`. */
  entry<V>(map: Record<string, V>, empty: V, read?: (reader: MessageReader) => V): void {
    if (this.#form !== delimited) return this.skip();
    const end = this.#end();
    const outer = this.#limit;
    this.#limit = end;
    let key = "";
    let value = empty;
    for (let field = this.next(); field >= 0; field = this.next()) {
      if (field === 1) key = this.string() ?? key;
      else if (field === 2) value = (read ? this.message(read) : (this.double() as V)) ?? value;
      else this.unknown(field);
    }
    this.#limit = outer;
    setOwn(map, key, value);
  }

  /** Skips a field that is not needed. */
  skip(): undefined {
    if (this.#form === varint) this.#varint64();
    else if (this.#form === delimited) this.#position = this.#end();
    else if (this.#form === fixed64) this.#position += this.#need(8);
    else if (this.#form === fixed32) this.#position += this.#need(4);
    else throw new MalformedMessage(`unknown wire type ${this.#form}`);
    return undefined;
  }

  /** Skips a field that its message does not have, and reports it. */
  unknown(field: number): void {
    this.#onUnknown?.(field);
    this.skip();
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
