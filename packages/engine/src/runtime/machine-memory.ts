import os from "node:os";

/** Part of the machine's memory that an engine may use unless it is told otherwise. */
const defaultFraction = 0.6;

/** Memory that an engine may use unless it is told otherwise. */
export function defaultMemoryBytes(): number {
  return Math.floor(machineBytes() * defaultFraction);
}

/** Memory that nothing uses at the moment, or `Infinity` where the system does not tell what it could free. */
export function unusedBytes(): number {
  // Elsewhere what files are remembered in counts as used, although it is given up when it is needed.
  return process.platform === "linux" ? process.availableMemory() : Infinity;
}

/** Memory of the machine, or of the container that the process runs in. */
export function machineBytes(): number {
  // A container's limit; 0 or absurdly large when there is none.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}
