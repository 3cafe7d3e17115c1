import { createHash } from "node:crypto";
import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { StudioExhibitKind, StudioFile } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { notFound } from "../errors/api-error.js";
import { exhibitsOfFolder, exhibitStepsOfFolder, type FolderExhibit } from "./folder-exhibits.js";
import { isWithin, maxFileBytes, RunFiles } from "./folder-files.js";
import { readWhole } from "./open-file.js";
import { FolderImport } from "./import-folder.js";
import type { LogIntake } from "./log-intake.js";

/** Files of a run's folder that are shown; nothing else in it is. */
const textFiles =
  /^(logs\.log|code\.diff|(iteration_\d{6}\/|capture\/|[\w-]+\/(?=result|trajectories))?[\w.-]+\.jsonl?)$/;
const pageFiles = /^(iteration_\d{6}\/)?[\w.-]+\.html$/;
const pollMs = 1000;
const waitMs = 1500;
const maxFolders = 2000;

/**
 * Folders of runs that were given with `--logs`, as the Python cookbook and `RunLog` write them.
 *
 * - A folder is a run when it holds `metrics.jsonl` or `config.json`; the given folder and one level below
 *   are looked at. So is each evaluation of a store, which has a `runs.jsonl` beside its folder `runs`. Links
 *   that lead out of what was given are not followed.
 * - Metrics, checkpoints, spans and the text log are imported while a page is open. Rollouts and samples are read from
 *   the files when they are looked at: to copy them would double what they take.
 */
export class LogFolders {
  readonly #core: Core;
  readonly #intake: LogIntake;
  readonly #roots: Set<string>;
  readonly #folders = new Map<string, FolderImport>();
  readonly #poller = new Poller(
    () => {
      const polling = this.#pollNow();
      this.#core.context.recorder.inBackground(polling);
      return polling;
    },
    { everyMs: pollMs, waitMs },
  );
  #hasRemovedOthers = false;

  constructor(core: Core, intake: LogIntake, roots: readonly string[]) {
    this.#core = core;
    this.#intake = intake;
    this.#roots = new Set(roots);
  }

  get isEmpty(): boolean {
    return this.#roots.size === 0;
  }

  /** Shows more folders. */
  add(roots: readonly string[]): void {
    for (const root of roots) this.#roots.add(root);
  }

  /** True for a run of a folder that was given and found. */
  has(id: string): boolean {
    return this.#folders.has(id);
  }

  /** Imports what is new; waits a moment for it. */
  async poll(): Promise<void> {
    const { isClosing } = this.#core.context.recorder;
    if (!isClosing && !(this.isEmpty && this.#hasRemovedOthers)) await this.#poller.poll();
  }

  async files(id: string): Promise<StudioFile[]> {
    const files = this.#find(id);
    const names = await readdir(files.folder, { recursive: true }).catch(() => []);
    const shown: StudioFile[] = [];
    for (const name of names
      .map((one) => one.replaceAll("\\", "/"))
      .toSorted()
      .slice(0, 5000)) {
      const isText = textFiles.test(name);
      if (!isText && !pageFiles.test(name)) continue;
      const match = await files.find(name).catch(() => undefined);
      if (match) shown.push({ name, sizeBytes: match.size, isText });
    }
    return shown;
  }

  /** A file of a run; HTML is a download, never a page. */
  async file(id: string, name: string): Promise<Response> {
    const isText = textFiles.test(name);
    if (!isText && !pageFiles.test(name)) throw notFound(`file ${name}`);
    const { place, size } = await this.#find(id).find(name);
    if (size > maxFileBytes) throw notFound(`a file of at most 64 MB called ${name}`);
    const bytes = await readWhole(place);
    const fileName = path.basename(name).replace(/[^\w.-]/g, "_");
    return new Response(new Uint8Array(bytes), {
      headers: {
        "content-type": isText ? "text/plain; charset=utf-8" : "application/octet-stream",
        "content-length": String(bytes.length),
        ...(isText ? {} : { "content-disposition": `attachment; filename="${fileName}"` }),
      },
    });
  }

  /** Steps that have exhibits of a kind. */
  steps(id: string, kind: StudioExhibitKind): Promise<number[]> {
    return exhibitStepsOfFolder(this.#find(id), kind);
  }

  /** The exhibits of a step. */
  exhibits(id: string, kind: StudioExhibitKind, step: number): Promise<FolderExhibit[]> {
    return exhibitsOfFolder(this.#find(id), kind, step);
  }

  #find(id: string): RunFiles {
    const folder = this.#folders.get(id);
    if (!folder) throw notFound(`run ${id}`);
    return folder.files;
  }

  async #pollNow(): Promise<void> {
    const { recorder } = this.#core.context;
    for (const given of this.#roots) {
      const root = await realpath(given).catch(() => undefined);
      if (root === undefined) continue;
      for (const candidate of [root, ...(await foldersIn(root))].slice(0, maxFolders)) {
        await this.#consider(root, candidate);
        const isStore = await stat(path.join(candidate, "runs.jsonl")).catch(() => undefined);
        if (!isStore) continue;
        for (const run of (await foldersIn(path.join(candidate, "runs"))).slice(0, maxFolders))
          await this.#consider(root, run, true);
      }
    }
    if (!this.#hasRemovedOthers) await this.#removeOthers();
    // A part of each in turns, so that a large one does not keep others waiting.
    let rest = [...this.#folders.values()];
    while (rest.length > 0 && !recorder.isClosing) {
      const unfinished: FolderImport[] = [];
      for (const folder of rest) {
        if (!recorder.isClosing && (await folder.importLines())) unfinished.push(folder);
      }
      rest = unfinished;
    }
  }

  /** Takes a folder for a run if it is one; an evaluation has another file for its configuration. */
  async #consider(root: string, candidate: string, isEvaluation = false): Promise<void> {
    const folder = await realpath(candidate).catch(() => undefined);
    if (folder === undefined || !isWithin(folder, root)) return;
    const id = `folder-${createHash("sha256").update(folder).digest("hex").slice(0, 20)}`;
    const parts = { core: this.#core, intake: this.#intake, id, isEvaluation };
    const known = this.#folders.get(id);
    const run = known ?? new FolderImport(new RunFiles(folder, root), parts);
    if (await run.importHead()) this.#folders.set(id, run);
  }

  /** Removes runs of folders that are not given any more. */
  async #removeOthers(): Promise<void> {
    const { store, recorder } = this.#core.context;
    const others = store.logs.ofFolders().filter((id) => !this.#folders.has(id));
    for (const id of others) await store.write(() => void recorder.remove(id));
    this.#hasRemovedOthers = true;
  }
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((one) => !one.isFile()).map(({ name }) => path.join(folder, name));
}

/** How often a poller polls, and how long callers wait for it. */
interface PollerOptions {
  readonly everyMs: number;
  readonly waitMs: number;
}

/** Polls when it is asked and the last time is long enough ago; a poll that takes long continues in the background. */
class Poller {
  readonly #pollNow: () => Promise<void>;
  readonly #options: PollerOptions;
  #polling: Promise<void> | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(pollNow: () => Promise<void>, options: PollerOptions) {
    this.#pollNow = pollNow;
    this.#options = options;
  }

  async poll(): Promise<void> {
    const { everyMs } = this.#options;
    if (this.#polling === undefined && performance.now() - this.#endedAt > everyMs) {
      this.#startedAt = performance.now();
      this.#polling = this.#pollNow().finally(() => {
        this.#polling = undefined;
        this.#endedAt = performance.now();
      });
    }
    const leftMs = this.#startedAt + this.#options.waitMs - performance.now();
    if (this.#polling === undefined || leftMs <= 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, leftMs);
    });
    await Promise.race([this.#polling, late]).finally(() => clearTimeout(timer));
  }
}
