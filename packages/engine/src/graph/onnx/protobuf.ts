/** From this size on, bytes are referenced instead of copied into the running buffer. */
const referencedFromBytes = 4096;

const encoder = new TextEncoder();

/**
 * Writes protocol buffers: the subset that ONNX models need.
 *
 * Small fields collect in a buffer that grows; large ones (weights) are kept by reference and joined once
 * at the end, so hundreds of megabytes are not copied at every level of nesting.
 */
export class ProtobufWriter {
  readonly #pieces: Uint8Array[] = [];
  #buffer = new Uint8Array(64);
  #used = 0;
  #flushedBytes = 0;

  varint(field: number, value: number): this {
    return this.#tag(field, 0).#varint(value);
  }

  float(field: number, value: number): this {
    return this.#tag(field, 5).#append(new Uint8Array(Float32Array.of(value).buffer));
  }

  string(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#tag(field, 2).#varint(value.byteLength).#append(value);
  }

  message(field: number, message: ProtobufWriter): this {
    this.#tag(field, 2).#varint(message.#flushedBytes + message.#used);
    for (const piece of message.#pieces) this.#append(piece);
    return this.#append(message.#buffer.subarray(0, message.#used));
  }

  finish(): Uint8Array {
    this.#flush();
    const joined = new Uint8Array(this.#flushedBytes);
    let offset = 0;
    for (const piece of this.#pieces) {
      joined.set(piece, offset);
      offset += piece.byteLength;
    }
    return joined;
  }

  #tag(field: number, wireType: number): this {
    return this.#varint(field * 8 + wireType);
  }

  #varint(value: number): this {
    this.#reserve(10);
    if (value < 0) return this.#negativeVarint(BigInt(value));
    let rest = value;
    while (rest > 127) {
      this.#buffer[this.#used++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#buffer[this.#used++] = rest;
    return this;
  }

  #negativeVarint(value: bigint): this {
    let rest = BigInt.asUintN(64, value);
    while (rest > 127n) {
      this.#buffer[this.#used++] = Number(rest & 127n) + 128;
      rest >>= 7n;
    }
    this.#buffer[this.#used++] = Number(rest);
    return this;
  }

  #append(piece: Uint8Array): this {
    if (piece.byteLength < referencedFromBytes) {
      this.#reserve(piece.byteLength);
      this.#buffer.set(piece, this.#used);
      this.#used += piece.byteLength;
    } else {
      this.#flush();
      this.#pieces.push(piece);
      this.#flushedBytes += piece.byteLength;
    }
    return this;
  }

  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(this.#buffer.length * 2, this.#used + bytes));
    grown.set(this.#buffer);
    this.#buffer = grown;
  }

  #flush(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#buffer.slice(0, this.#used));
    this.#flushedBytes += this.#used;
    this.#used = 0;
  }
}
