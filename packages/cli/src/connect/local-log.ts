import { watchFile, unwatchFile, openSync, readSync, closeSync, statSync } from "node:fs";
import type { Output } from "../output/output.js";

/** Lines of a local server's log that a person waits for. */
const fetching = /info +fetching model (.*)$/;
const warning = /(?:warn|error) +(.*)$/;
const pollMs = 250;

/** Shows warnings and downloads of a local server from its log until it is stopped. */
export function followLocalLog(file: string, output: Output): () => void {
  let offset = sizeOf(file);
  const read = (): void => {
    const end = sizeOf(file);
    if (end < offset) offset = 0;
    if (end === offset) return;
    const bytes = Buffer.alloc(end - offset);
    const descriptor = openSync(file, "r");
    try {
      readSync(descriptor, bytes, 0, bytes.length, offset);
    } finally {
      closeSync(descriptor);
    }
    const whole = bytes.lastIndexOf(0x0a) + 1;
    offset += whole;
    for (const line of bytes.subarray(0, whole).toString().split("\n")) show(line, output);
  };
  watchFile(file, { interval: pollMs, persistent: false }, read);
  return () => {
    unwatchFile(file, read);
    read();
  };
}

function show(line: string, output: Output): void {
  const [, download] = fetching.exec(line) ?? [];
  if (download !== undefined) return output.note(`Fetching ${download}`);
  const [, problem] = warning.exec(line) ?? [];
  // The command that needs the model reports it itself.
  if (problem === undefined || problem.startsWith("a base model cannot be read")) return;
  output.note(`Warning: ${problem}`);
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}
