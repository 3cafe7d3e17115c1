/** The vocabulary in the order of its bytes, so that common prefixes are checked once. */
export interface TokenTable {
  /** Number of ids, those without bytes included. */
  readonly vocabSize: number;
  /** Ids of all tokens that are text. */
  readonly ids: Int32Array;
  /** Their bytes, one token after the other. */
  readonly bytes: Uint8Array;
  /** Where the bytes of each token begin, and where the last ends. */
  readonly starts: Int32Array;
  /** How many bytes each token shares with the one before it. */
  readonly shared: Int32Array;
}

/** Sorts a vocabulary; tokens for which `bytesOf` gives nothing are no text and left out. */
export function makeTokenTable(
  vocabSize: number,
  bytesOf: (token: number) => Uint8Array,
): TokenTable {
  // Strings of one character per byte: sorting them is many times faster than comparing bytes here.
  const texts = new Map<string, number[]>();
  for (let id = 0; id < vocabSize; id++) {
    const bytes = bytesOf(id);
    if (bytes.length === 0) continue;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    const same = texts.get(text);
    if (same === undefined) texts.set(text, [id]);
    else same.push(id);
  }
  const sorted = [...texts.keys()].toSorted();
  const ids: number[] = [];
  const starts: number[] = [0];
  const shared: number[] = [];
  const parts: string[] = [];
  let end = 0;
  let before = "";
  for (const text of sorted) {
    for (const id of texts.get(text) ?? []) {
      ids.push(id);
      shared.push(sharedLength(before, text));
      parts.push(text);
      end += text.length;
      starts.push(end);
      before = text;
    }
  }
  return {
    vocabSize,
    ids: Int32Array.from(ids),
    bytes: Buffer.from(parts.join(""), "latin1"),
    starts: Int32Array.from(starts),
    shared: Int32Array.from(shared),
  };
}

function sharedLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  return length;
}
