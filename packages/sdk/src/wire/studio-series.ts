/*
 * Curves as bytes: the length of a header (32 bits, little-endian, like everything), the header as JSON
 * padded with spaces to a multiple of 8, then the columns of each series one after the other, each padded
 * to a multiple of 8. The header says which columns a series has and how long they are.
 */

/** A column and the bytes of its numbers: places are exact, values are for the eye. */
export const studioColumns = {
  /** Where the bucket begins, or where the point is. */
  x: 8,
  /** Mean of the finite values; NaN without one. */
  mean: 4,
  /** Least finite value. */
  min: 4,
  /** Largest finite value. */
  max: 4,
  /** Finite points. */
  count: 4,
  /** Points that are no number. */
  nan: 4,
  /** Points that are infinite. */
  plusInfinity: 4,
  /** Points that are minus infinity. */
  minusInfinity: 4,
} as const;

/** The name of a column. */
export type StudioColumn = keyof typeof studioColumns;

/** What comes before the columns of a series. */
export interface StudioSeriesHeader {
  /** The run. */
  readonly run: string;
  /** The metric. */
  readonly key: string;
  /** The last attempt that is in it; of abandoned points the one that made them. */
  readonly attempt: number;
  /** Points of an attempt that a later one has replaced. */
  readonly isAbandoned: boolean;
  /** Width of a bucket, a power of two, and buckets lie on its multiples; 0 when these are the points themselves. */
  readonly width: number;
  /** Points of the range, finite or not. */
  readonly total: number;
  /** Length of each column. */
  readonly length: number;
  /** The columns, in order; `x` and `mean` always, and others where they say more. */
  readonly columns: readonly StudioColumn[];
}

/** A series as it was asked for. */
export interface StudioSeries extends StudioSeriesHeader {
  /** Where buckets begin, ascending. */
  readonly x: Float64Array;
  /** Means; the points themselves where `width` is 0. */
  readonly mean: Float32Array;
  /** Least values; the same as `mean` where nothing was reduced. */
  readonly min: Float32Array;
  /** Largest values; the same as `mean` where nothing was reduced. */
  readonly max: Float32Array;
  /** Finite points per bucket; null where it is at most one. */
  readonly count: Uint32Array | null;
  /** NaNs per bucket; null without any. */
  readonly nan: Uint32Array | null;
  /** Infinities per bucket; null without any. */
  readonly plusInfinity: Uint32Array | null;
  /** Minus infinities per bucket; null without any. */
  readonly minusInfinity: Uint32Array | null;
}

/** Reads the answer of the series endpoint; the columns are views of its bytes. */
export function readStudioSeries(bytes: ArrayBuffer): StudioSeries[] {
  const headerBytes = new DataView(bytes).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(bytes, 4, headerBytes));
  const { series } = JSON.parse(text) as { series: StudioSeriesHeader[] };
  let offset = 4 + headerBytes;
  return series.map((header) => {
    const column = (name: StudioColumn): ArrayBuffer | null => {
      if (!header.columns.includes(name)) return null;
      const part = bytes.slice(offset, offset + header.length * studioColumns[name]);
      offset += padded(part.byteLength);
      return part;
    };
    const floats = (name: StudioColumn): Float32Array | null => {
      const part = column(name);
      return part && new Float32Array(part);
    };
    const counts = (name: StudioColumn): Uint32Array | null => {
      const part = column(name);
      return part && new Uint32Array(part);
    };
    // In the order of `studioColumns`, which is the order of the bytes.
    const x = new Float64Array(column("x") ?? new ArrayBuffer(0));
    const mean = floats("mean") ?? new Float32Array(0);
    const min = floats("min") ?? mean;
    const max = floats("max") ?? mean;
    const count = counts("count");
    const nan = counts("nan");
    const plusInfinity = counts("plusInfinity");
    const minusInfinity = counts("minusInfinity");
    return { ...header, x, mean, min, max, count, nan, plusInfinity, minusInfinity };
  });
}

/** Writes series as the endpoint answers them. */
export function writeStudioSeries(series: readonly StudioSeries[]): Uint8Array {
  const columnsOf = (one: StudioSeries) =>
    (Object.keys(studioColumns) as StudioColumn[]).flatMap((name) => {
      const data = one[name];
      const isSaid = data !== null && !((name === "min" || name === "max") && data === one.mean);
      return isSaid ? { name, data } : [];
    });
  const headers = series.map((one): StudioSeriesHeader => {
    const { run, key, attempt, isAbandoned, width, total, length } = one;
    const columns = columnsOf(one).map(({ name }) => name);
    return { run, key, attempt, isAbandoned, width, total, length, columns };
  });
  const json = new TextEncoder().encode(JSON.stringify({ series: headers }));
  const headerBytes = padded(json.length + 4) - 4;
  const parts = series.flatMap(columnsOf).map(({ data }) => data);
  const size = parts.reduce((sum, { byteLength }) => sum + padded(byteLength), 4 + headerBytes);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, headerBytes, true);
  bytes.set(json, 4);
  bytes.fill(0x20, 4 + json.length, 4 + headerBytes);
  let offset = 4 + headerBytes;
  for (const part of parts) {
    bytes.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), offset);
    offset += padded(part.byteLength);
  }
  return bytes;
}

function padded(length: number): number {
  return Math.ceil(length / 8) * 8;
}
