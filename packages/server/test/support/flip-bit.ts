import { readFileSync, writeFileSync } from "node:fs";

/** Flips one bit in the middle of a file, which disks do now and then. */
export function flipBit(file: string): void {
  const bytes = readFileSync(file);
  const middle = bytes.length >> 1;
  bytes[middle] = bytes[middle]! ^ 4;
  writeFileSync(file, bytes);
}
