import { createHash } from "node:crypto";
import { mkdir, open, type FileHandle } from "node:fs/promises";
import path from "node:path";
import type { ModelInput } from "tinker-ts";
import type { TeacherTopK } from "./soft-targets.js";

/** The file of a run's folder with a teacher's distributions. */
export const answersFile = "teacher_targets.jsonl";

/** Where an answer stands in the file. */
interface Span {
  readonly start: number;
  readonly length: number;
}

/**
 * What a teacher said, kept in a file: only where each answer stands is in memory, because the answers of a data set are
 * many times as large as the data.
 *
 * - A line per sequence; what a crash cut off is asked for again.
 * - Numbers are rounded to 32 bits before they are used, so that an answer that was kept is the one that was given.
 */
export class KeptAnswers {
  readonly #handle: FileHandle;
  readonly #spans: Map<string, Span>;
  #end: number;

  private constructor(handle: FileHandle, spans: Map<string, Span>, end: number) {
    this.#handle = handle;
    this.#spans = spans;
    this.#end = end;
  }

  /** Opens the file of a run, with what it holds or empty. */
  static async open(
    folder: string,
    { isEmpty = false }: { readonly isEmpty?: boolean } = {},
  ): Promise<KeptAnswers> {
    const file = path.join(folder, answersFile);
    await mkdir(folder, { recursive: true });
    // Not to append: that would ignore the places at which lines are written.
    const handle = isEmpty
      ? await open(file, "w+")
      : await open(file, "r+").catch((error: unknown) => {
          if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
          return open(file, "w+");
        });
    const spans = new Map<string, Span>();
    let end = 0;
    for await (const line of linesOf(handle)) {
      const key = /^\{"key":"([^"]+)","targets":"[^"]*"\}$/.exec(line.text)?.[1];
      if (key !== undefined) spans.set(key, { start: line.start, length: line.text.length });
      end = line.start + line.text.length + 1;
    }
    return new KeptAnswers(handle, spans, end);
  }

  /** What was said of a sequence, asked for if it never was. */
  async of(sequence: ModelInput, k: number, ask: () => Promise<TeacherTopK>): Promise<TeacherTopK> {
    const key = keyOf(sequence, k);
    const span = this.#spans.get(key);
    if (span) return decode(await this.#read(span));
    const targets = encode(await ask());
    const text = JSON.stringify({ key, targets });
    const start = this.#end;
    this.#end += text.length + 1;
    await this.#handle.write(`${text}\n`, start);
    this.#spans.set(key, { start, length: text.length });
    return decode(targets);
  }

  /** Gives the file back. */
  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #read({ start, length }: Span): Promise<string> {
    const { buffer } = await this.#handle.read(Buffer.alloc(length), 0, length, start);
    return (JSON.parse(buffer.toString("latin1")) as { targets: string }).targets;
  }
}

/** The whole lines of a file of plain characters, with the places where they begin. */
async function* linesOf(handle: FileHandle): AsyncGenerator<{ text: string; start: number }> {
  let rest = "";
  let start = 0;
  const chunk = Buffer.alloc(1 << 20);
  for (let at = 0; ;) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    const lines = (rest + chunk.toString("latin1", 0, bytesRead)).split("\n");
    rest = lines.pop()!;
    for (const text of lines) {
      yield { text, start };
      start += text.length + 1;
    }
  }
}

function keyOf(sequence: ModelInput, k: number): string {
  return createHash("sha256")
    .update(`${k}\n${JSON.stringify(sequence)}`)
    .digest("base64url");
}

/** Per place the number of tokens, then all tokens, then all log-probabilities; as base64. */
function encode(targets: TeacherTopK): string {
  const counts = Int32Array.from(targets, (row) => (row ? row.length : -1));
  const cells = targets.flatMap((row) => row ?? []);
  const parts = [
    Int32Array.of(counts.length),
    counts,
    Int32Array.from(cells, ([token]) => token),
    Float32Array.from(cells, ([, logprob]) => logprob),
  ];
  return Buffer.concat(parts.map((part) => Buffer.from(part.buffer))).toString("base64");
}

function decode(text: string): TeacherTopK {
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  const words = new Int32Array(bytes.buffer);
  const places = words[0]!;
  const counts = words.subarray(1, 1 + places);
  const cells = (words.length - 1 - places) / 2;
  const tokens = words.subarray(1 + places, 1 + places + cells);
  const logprobs = new Float32Array(bytes.buffer, (1 + places + cells) * 4, cells);
  let at = 0;
  return Array.from(counts, (count) => {
    if (count < 0) return null;
    const row = Array.from({ length: count }, (_, slot) => {
      return [tokens[at + slot]!, logprobs[at + slot]!] as const;
    });
    at += count;
    return row;
  });
}
