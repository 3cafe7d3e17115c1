import type { Logger } from "../log/logger.js";
import { storeContent, type Content } from "../store/content.js";
import type { ExhibitKind } from "../store/exhibits-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { packExhibits, type PreparedExhibits } from "./data-exhibits.js";
import type { EventHub } from "./event-hub.js";

/** The owner and the run of exhibits. */
export interface ExhibitPlace {
  readonly owner: string;
  readonly logId: string;
  readonly modelId: string | null;
  readonly step: number;
  readonly kind: ExhibitKind;
  readonly split: string;
  readonly at: number;
}

interface Fresh {
  readonly place: ExhibitPlace;
  readonly make: () => PreparedExhibits;
}

interface Ready {
  readonly place: ExhibitPlace;
  readonly heads: string;
  readonly seen: number;
  readonly bytes: Uint8Array;
}

/** How long exhibits wait for more of their kind while no page is open. */
const gatherMs = 1000;
const gatherBytes = 1024 * 1024;

/** Beyond this, what comes is left out. */
const maxWaitingBytes = 16 * 1024 * 1024;

/** Until then their requests have been answered: who shares the core with this process has read the answer. */
const pauseMs = 10;

/** More than this are made at once: they hold on to the whole requests they come from. */
const maxFresh = 8;

/**
 * Puts exhibits on disk behind everything that a caller waits for.
 *
 * - They are made in a pause, after the answer of the request that they come from.
 * - Those of many steps share a transaction; readers call `settled` first.
 * - To lose some is no harm: what cannot be kept in time is left out, and a crash takes the last second.
 */
export class ExhibitKeeper {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #hub: EventHub;
  #fresh: Fresh[] = [];
  #ready: Ready[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #cancelGather: (() => void) | undefined;

  constructor(parts: {
    readonly store: Store;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly hub: EventHub;
  }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#hub = parts.hub;
  }

  /** Takes exhibits in; `make` is called soon, so that what it holds on to is let go. */
  add(place: ExhibitPlace, make: () => PreparedExhibits): void {
    if (this.#waitingBytes >= maxWaitingBytes) return;
    if (this.#fresh.length === 0) this.#clock.after(pauseMs, () => this.#makeReady());
    this.#fresh.push({ place, make });
    if (this.#fresh.length >= maxFresh) this.#makeReady();
  }

  /** Resolves when everything that was taken in is on disk, or known to be lost. */
  async settled(): Promise<void> {
    this.#makeReady();
    while (this.#writing || this.#ready.length > 0) await this.#write();
  }

  /** Leaves out what waits of a run. */
  forget(logId: string): void {
    this.#fresh = this.#fresh.filter(({ place }) => place.logId !== logId);
    this.#ready = this.#ready.filter(({ place, bytes }) => {
      if (place.logId === logId) this.#waitingBytes -= bytes.length;
      return place.logId !== logId;
    });
  }

  #makeReady(): void {
    for (const { place, make } of this.#fresh.splice(0)) {
      try {
        const { heads, contents, seen } = make();
        if (heads.length === 0) continue;
        const bytes = packExhibits(contents);
        this.#waitingBytes += bytes.length;
        this.#ready.push({ place, heads: JSON.stringify(heads), seen, bytes });
      } catch (error) {
        this.#warn(error);
      }
    }
    if (this.#ready.length === 0) return;
    if (this.#hub.isWatched || this.#waitingBytes >= gatherBytes) void this.#write();
    else this.#cancelGather ??= this.#clock.after(gatherMs, () => void this.#write());
  }

  #write(): Promise<void> {
    this.#cancelGather?.();
    this.#cancelGather = undefined;
    this.#writing ??= this.#writeReady().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #writeReady(): Promise<void> {
    while (this.#ready.length > 0) {
      const batch = this.#ready.splice(0);
      try {
        await this.#writeBatch(batch);
      } catch (error) {
        this.#warn(error);
      } finally {
        this.#waitingBytes -= batch.reduce((sum, { bytes }) => sum + bytes.length, 0);
      }
    }
  }

  async #writeBatch(batch: readonly Ready[]): Promise<void> {
    const { exhibits, exhibitFiles } = this.#store;
    const contents: Content[] = [];
    for (const { bytes } of batch) contents.push(await storeContent(bytes, exhibitFiles));
    await this.#store.write(() => {
      for (const [index, { place, heads, seen }] of batch.entries()) {
        exhibits.insert({ ...place, seen, heads, content: contents[index]! });
      }
    });
    for (const { place } of batch) this.#hub.noteChange(place.owner, place.logId, "exhibit");
  }

  #warn(error: unknown): void {
    this.#logger.warn("exhibits could not be kept", { error: String(error) });
  }
}
