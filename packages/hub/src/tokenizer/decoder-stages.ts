/** Receives the pieces of a text one after the other. */
export interface PieceSink {
  push(piece: string): void;
  /** Ends the text: held-back pieces are passed on. */
  end(): void;
}

/**
 * One step from tokens to text. A stage passes on final text and holds back the
 * rest, so that decoding token by token gives the same text as decoding at once.
 */
export interface DecoderStage {
  /** Starts a text; its pieces are passed to `next`. */
  start(next: PieceSink): PieceSink;
  /** The output for a piece in the middle of a text; bytes if a token is not a whole character. */
  inner(piece: string): string | Uint8Array;
}

/** Byte-level vocabularies: each character is a byte of UTF-8. */
export const byteLevelStage: DecoderStage = {
  start(next) {
    // A streaming decoder holds back an unfinished character and replaces invalid bytes only.
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return {
      push: (piece) => next.push(decoder.decode(byteLevelBytes(piece), { stream: true })),
      end: () => {
        next.push(decoder.decode());
        next.end();
      },
    };
  },
  inner: byteLevelBytes,
};

/** Sentencepiece vocabularies spell bytes they have no token for as `<0x0A>`. */
export const byteFallbackStage: DecoderStage = {
  start(next) {
    let run: number[] = [];
    // A run of such tokens is text as a whole or not at all: one invalid byte turns every byte of
    // the run into a replacement character. So it is held back until it ends.
    const endRun = () => {
      if (run.length > 0) next.push(decodeRun(run));
      run = [];
    };
    return {
      push: (piece) => {
        const byte = fallbackByte(piece);
        if (byte !== undefined) run.push(byte);
        else {
          endRun();
          next.push(piece);
        }
      },
      end: () => {
        endRun();
        next.end();
      },
    };
  },
  inner: (piece) => {
    const byte = fallbackByte(piece);
    return byte === undefined ? piece : Uint8Array.of(byte);
  },
};

/** Replaces every occurrence of a text. */
export function replaceStage(pattern: string, content: string): DecoderStage {
  const inner = (piece: string) => piece.replaceAll(pattern, () => content);
  return {
    start: (next) => ({ push: (piece) => next.push(inner(piece)), end: () => next.end() }),
    inner,
  };
}

/** Turns the sign for a space back into a space; that of the first token only marks the start of the text. */
export function metaspaceStage(sign: string, dropFirst: boolean): DecoderStage {
  const inner = (piece: string) => piece.replaceAll(sign, " ");
  return {
    start(next) {
      let first = dropFirst;
      return {
        push: (piece) => {
          next.push(first ? piece.replaceAll(sign, "") : inner(piece));
          first = false;
        },
        end: () => next.end(),
      };
    },
    inner,
  };
}

/** Removes up to `count` leading characters `content` of the whole text. */
export function stripStartStage(content: string, count: number): DecoderStage {
  return {
    start(next) {
      let left = count;
      return {
        push: (piece) => {
          let rest = piece;
          for (; left > 0 && rest.startsWith(content); left--) rest = rest.slice(content.length);
          if (rest !== "") left = 0;
          next.push(rest);
        },
        end: () => next.end(),
      };
    },
    inner: (piece) => piece,
  };
}

/** Vocabularies without a decoder: tokens are words. */
export const wordsStage: DecoderStage = {
  start(next) {
    let first = true;
    return {
      push: (piece) => {
        next.push(first ? piece : ` ${piece}`);
        first = false;
      },
      end: () => next.end(),
    };
  },
  inner: (piece) => ` ${piece}`,
};

function fallbackByte(piece: string): number | undefined {
  return /^<0x[0-9A-Fa-f]{2}>$/.test(piece) ? Number.parseInt(piece.slice(3, 5), 16) : undefined;
}

function decodeRun(run: readonly number[]): string {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decoder.decode(Uint8Array.from(run));
  } catch {
    return "\ufffd".repeat(run.length);
  }
}

// Byte-level vocabularies spell each byte as one printable character: printable Latin-1 bytes as
// themselves, the other 68 as the characters from U+0100 on, in order.

/** The byte of each character of the alphabet, by character code; -1 elsewhere. */
const byteOfCharacter: Int16Array = makeTable();

/** The bytes of a byte-level token; a token with other characters is its own text. */
function byteLevelBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOfCharacter[token.charCodeAt(i)] ?? -1;
    if (byte < 0) return Buffer.from(token);
    bytes[i] = byte;
  }
  return bytes;
}

function makeTable(): Int16Array {
  const table = new Int16Array(256 + 68).fill(-1);
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    table[printable ? byte : next++] = byte;
  }
  return table;
}
