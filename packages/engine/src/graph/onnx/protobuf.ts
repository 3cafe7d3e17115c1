/** From this size on, bytes are referenced instead of copied into the running buffer. */
const referencedFromBytes = 4096;

/**
 * Writes protocol buffers, just as much as ONNX models need.
 *
 * Small fields collect in a list; large ones (weights) are kept by reference and joined once at the
 * end, so hundreds of megabytes are not copied at every level of nesting.
 */
export class ProtobufWriter {
  readonly #pieces: Uint8Array[] = [];
  #tail: number[] = [];
  #flushedBytes = 0;

  varint(field: number, value: number): this {
    return this.#tag(field, 0).#varint(value);
  }

  float(field: number, value: number): this {
    this.#tag(field, 5);
    this.#tail.push(...new Uint8Array(Float32Array.of(value).buffer));
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#tag(field, 2).#varint(value.byteLength).#append(value);
  }

  message(field: number, message: ProtobufWriter): this {
    this.#tag(field, 2).#varint(message.#flushedBytes + message.#tail.length);
    for (const piece of message.#pieces) this.#append(piece);
    for (const byte of message.#tail) this.#tail.push(byte);
    return this;
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
    if (value < 0) return this.#negativeVarint(BigInt(value));
    let rest = value;
    while (rest > 127) {
      this.#tail.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    this.#tail.push(rest);
    return this;
  }

  #negativeVarint(value: bigint): this {
    let rest = BigInt.asUintN(64, value);
    while (rest > 127n) {
      this.#tail.push(Number(rest & 127n) + 128);
      rest >>= 7n;
    }
    this.#tail.push(Number(rest));
    return this;
  }

  #append(piece: Uint8Array): this {
    if (piece.byteLength < referencedFromBytes) {
      for (const byte of piece) this.#tail.push(byte);
    } else {
      this.#flush();
      this.#pieces.push(piece);
      this.#flushedBytes += piece.byteLength;
    }
    return this;
  }

  #flush(): void {
    if (this.#tail.length === 0) return;
    this.#pieces.push(Uint8Array.from(this.#tail));
    this.#flushedBytes += this.#tail.length;
    this.#tail = [];
  }
}
