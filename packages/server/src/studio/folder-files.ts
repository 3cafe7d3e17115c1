import type { Stats } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { notFound } from "../errors/api-error.js";
import { LruMap } from "../lru-map.js";
import { openFile, readWhole } from "./open-file.js";
import { parseLine, type JsonLine } from "./line-file.js";

/** What is larger is not read at once. */
export const maxFileBytes = 64 << 20;
/** Longest time that reading lines holds the event loop. */
const turnMs = 12;
const maxRemembered = 4;

/** A file that may be read. */
export interface FoundFile {
  readonly place: string;
  readonly stats: Stats;
  readonly size: number;
  /** Changes with the file. */
  readonly stamp: string;
}

/** Files of one run's folder, as others have written them; links that lead out of what was given are not followed. */
export class RunFiles {
  readonly folder: string;
  readonly #root: string;
  /** The last files that were read, by name: a list of rollouts and each of them come from the same one. */
  readonly #read = new LruMap<string, { readonly stamp: string; readonly lines: JsonLine[] }>(
    maxRemembered,
  );

  constructor(folder: string, root: string) {
    this.folder = folder;
    this.#root = root;
  }

  /** A file, wherever its name leads, as long as that is within what was given. */
  async find(name: string): Promise<FoundFile> {
    const refused = notFound(`file ${name}`);
    const wanted = path.join(this.folder, name);
    if (!isWithin(wanted, this.folder)) throw refused;
    const place = await realpath(wanted).catch(() => {
      throw refused;
    });
    if (!isWithin(place, this.#root)) throw refused;
    const file = await openFile(place);
    if (!file) throw refused;
    const stats = await file.stat().finally(() => void file.close());
    return { place, stats, size: stats.size, stamp: `${stats.size}:${stats.mtimeMs}` };
  }

  /** Names in the folder or in one below it; none where there is no such folder. */
  async names(below = ""): Promise<string[]> {
    const place = await realpath(path.join(this.folder, below)).catch(() => undefined);
    if (place === undefined || !isWithin(place, this.#root)) return [];
    const names = await readdir(place).catch(() => []);
    return names.toSorted((a, b) => (a < b ? -1 : 1));
  }

  /** A file as text; undefined when there is none, or when it is too large. */
  async text(name: string, mostBytes = maxFileBytes): Promise<string | undefined> {
    const found = await this.find(name).catch(() => undefined);
    if (!found || found.size > mostBytes) return undefined;
    return (await readWhole(found.place)).toString();
  }

  /** A file that is one object. */
  async json(name: string): Promise<JsonLine | undefined> {
    const text = await this.text(name);
    return text === undefined ? undefined : parseLine(text);
  }

  /** The whole lines of a file, each an object; broken ones are left out. */
  async lines(name: string): Promise<readonly JsonLine[]> {
    const found = await this.find(name).catch(() => undefined);
    if (!found || found.size > maxFileBytes) return [];
    const known = this.#read.get(name);
    if (known?.stamp === found.stamp) return known.lines;
    const text = (await readWhole(found.place)).toString();
    const lines: JsonLine[] = [];
    let turnEnd = performance.now() + turnMs;
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      const line = parseLine(text.slice(start, end));
      if (line) lines.push(line);
      start = end + 1;
      if (performance.now() > turnEnd) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        turnEnd = performance.now() + turnMs;
      }
    }
    // A last line that is whole although nothing follows it counts; half a one does not parse.
    const last = parseLine(text.slice(start));
    if (last) lines.push(last);
    this.#read.set(name, { stamp: found.stamp, lines });
    return lines;
  }
}

/** Whether a place is a folder or in it. */
export function isWithin(place: string, folder: string): boolean {
  return place === folder || place.startsWith(folder + path.sep);
}
