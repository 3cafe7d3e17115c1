import type { Datum } from "../../types/datum.js";
import { estimateDatumBytes } from "../byte-estimate.js";

/** The server's limits on one request. */
export interface ChunkLimits {
  readonly maxDatums: number;
  readonly maxBytes: number;
}

/** Consecutive data that travel in one request. */
export interface DataChunk {
  readonly data: readonly Datum[];
  readonly sizeBytes: number;
}

/** Cuts data into requests in order; a datum that is too large by itself gets a request of its own. */
export function chunkData(data: readonly Datum[], limits: ChunkLimits): DataChunk[] {
  const chunks: DataChunk[] = [];
  let current: Datum[] = [];
  let sizeBytes = 0;
  const close = (): void => {
    chunks.push({ data: current, sizeBytes });
    current = [];
    sizeBytes = 0;
  };
  for (const datum of data) {
    const datumBytes = estimateDatumBytes(datum);
    const isFull = current.length === limits.maxDatums || sizeBytes + datumBytes > limits.maxBytes;
    if (isFull && current.length > 0) close();
    current.push(datum);
    sizeBytes += datumBytes;
  }
  if (current.length > 0) close();
  return chunks;
}
