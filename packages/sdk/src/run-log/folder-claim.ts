import { readFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";

const fileName = ".writer.json";

/** Who writes into a folder. */
interface Writer {
  readonly pid: number;
  readonly host: string;
  /** When the process was started, where the system has it: a number is given anew after its process has ended. */
  readonly startedAt: string | null;
}

/** Logs of this process on a folder. */
const claims = new Map<string, number>();

/**
 * Keeps a second process from writing into the folder of a run. The claim is a file that names the process. One
 * that was killed leaves it behind: a claim counts while its process lives. Whether one on another machine does
 * cannot be seen from here; it is taken for dead, because a run that was moved must go on.
 */
export class FolderClaim {
  readonly #folder: string;
  #isReleased = false;

  private constructor(folder: string) {
    this.#folder = folder;
    claims.set(folder, (claims.get(folder) ?? 0) + 1);
  }

  /** Takes the folder, which is made when it is not there; rejects when another process has it. */
  static async take(folder: string): Promise<FolderClaim> {
    const file = path.join(folder, fileName);
    const own = JSON.stringify(thisWriter());
    await mkdir(folder, { recursive: true });
    while (!claims.has(folder)) {
      if (await create(file, own)) break;
      const text = await readFile(file, "utf8").catch(() => "");
      const writer = parse(text);
      if (writer && isAlive(writer)) throw inUse(folder, writer);
      await clear(file, text);
    }
    return new FolderClaim(folder);
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const left = (claims.get(this.#folder) ?? 1) - 1;
    if (left > 0) return void claims.set(this.#folder, left);
    claims.delete(this.#folder);
    // What cannot be removed does not matter once this process is gone.
    await rm(path.join(this.#folder, fileName), { force: true }).catch(() => {});
  }
}

async function create(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes a claim of the dead. Of several who find it one moves it away; a claim that is not that one is put back. */
async function clear(file: string, dead: string): Promise<void> {
  const aside = `${file}.${process.pid}`;
  try {
    await rename(file, aside);
    if ((await readFile(aside, "utf8")) === dead) await rm(aside);
    else await rename(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function thisWriter(): Writer {
  return { pid: process.pid, host: hostname(), startedAt: startOf(process.pid) };
}

function isAlive({ pid, host, startedAt }: Writer): boolean {
  if (host !== hostname() || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return startedAt === startOf(pid);
}

function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program, in brackets, may hold anything.
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function parse(text: string): Writer | undefined {
  try {
    const writer = JSON.parse(text) as Writer;
    return Number.isInteger(writer.pid) ? writer : undefined;
  } catch {
    return undefined;
  }
}

function inUse(folder: string, { pid }: Writer): ArgumentError {
  return new ArgumentError(
    "folder",
    `process ${pid} writes its run into ${folder}; wait until it ends, stop it, or choose another folder`,
  );
}
