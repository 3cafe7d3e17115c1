/*
 * Exhibits that came together are one content: the length of a header, the header as JSON, then columns of
 * numbers of 4 bytes. The header says which columns each exhibit has and where they begin, so that one can be
 * read without the others.
 */

/** A sequence of tokens and what is known of each. Columns are as long as `tokens`. */
export interface TokenColumns {
  readonly tokens: ArrayLike<number>;
  /** Weight in the loss. */
  readonly weight?: ArrayLike<number> | undefined;
  /** Logprob of the trainer, or of the sampler where it made the token. */
  readonly logprob?: ArrayLike<number> | undefined;
  readonly samplerLogprob?: ArrayLike<number> | undefined;
  readonly advantage?: ArrayLike<number> | undefined;
  /** Entropy of what could have come in its place. */
  readonly entropy?: ArrayLike<number> | undefined;
  /** 1 where a token was sampled. */
  readonly mask?: ArrayLike<number> | undefined;
}

/** The name of a column. */
export type TokenColumn = keyof TokenColumns;

/** One exhibit: its tokens, and whatever else was said. */
export interface ExhibitContent {
  readonly columns: TokenColumns;
  readonly extra?: Readonly<Record<string, unknown>> | undefined;
}

/** What lists show; kept apart from the content. */
export interface ExhibitHead {
  readonly group: number | null;
  readonly index: number;
  readonly reward: number | string | null;
  readonly advantage: number | string | null;
  readonly nll: number | string | null;
  readonly tokenCount: number;
  readonly trainedCount: number;
  readonly stopReason: string | null;
}

interface Header {
  readonly exhibits: readonly {
    /** Name, first number, length. */
    readonly columns: readonly (readonly [TokenColumn, number, number])[];
    readonly extra?: Readonly<Record<string, unknown>> | undefined;
  }[];
}

/** Many exhibits as bytes. */
export function packExhibits(exhibits: readonly ExhibitContent[]): Uint8Array {
  let length = 0;
  const parts: { name: TokenColumn; data: ArrayLike<number>; offset: number }[] = [];
  const header: Header = {
    exhibits: exhibits.map(({ columns, extra }) => ({
      columns: Object.entries(columns).flatMap(([name, given]) => {
        const data = given as ArrayLike<number> | undefined;
        if (!data) return [];
        const part = { name: name as TokenColumn, data, offset: length };
        parts.push(part);
        length += data.length;
        return [[part.name, part.offset, data.length] as const];
      }),
      ...(extra ? { extra } : {}),
    })),
  };
  const json = Buffer.from(JSON.stringify(header));
  const start = Math.ceil((json.length + 4) / 8) * 8;
  const bytes = new Uint8Array(start + length * 4);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  for (const { name, data, offset } of parts) {
    const view = name === "tokens" ? Int32Array : Float32Array;
    new view(bytes.buffer, start + offset * 4, data.length).set(data);
  }
  return bytes;
}

/** One exhibit of a content; undefined when there are fewer. */
export function unpackExhibit(bytes: Uint8Array, index: number): ExhibitContent | undefined {
  const whole = (bytes.byteOffset % 8 === 0 ? bytes : bytes.slice()) as Uint8Array<ArrayBuffer>;
  const jsonLength = new DataView(whole.buffer, whole.byteOffset).getUint32(0, true);
  const json = Buffer.from(whole.buffer, whole.byteOffset + 4, jsonLength).toString();
  const entry = (JSON.parse(json) as Header).exhibits[index];
  if (!entry) return undefined;
  const start = whole.byteOffset + Math.ceil((jsonLength + 4) / 8) * 8;
  const columns = entry.columns.map(([name, offset, length]) => {
    const view = name === "tokens" ? Int32Array : Float32Array;
    return [name, new view(whole.buffer, start + offset * 4, length)] as const;
  });
  return {
    columns: { tokens: new Int32Array(0), ...Object.fromEntries(columns) },
    ...(entry.extra ? { extra: entry.extra } : {}),
  };
}
