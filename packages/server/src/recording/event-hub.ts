import { randomBytes } from "node:crypto";
import type { StudioChange, StudioEvent } from "tinker-ts/wire";
import { LruMap } from "../lru-map.js";
import { everyone, type LogsTable } from "../store/logs-table.js";
import type { Clock } from "../time/clock.js";

/** An event with its place in the order of all. */
export interface NumberedEvent {
  readonly n: number;
  readonly owner: string;
  readonly topic: string;
  /** A later event with the same key replaces this one. */
  readonly key: string;
  readonly kind: StudioEvent["kind"];
  /** Everything but the kind, as JSON. */
  readonly data: string;
}

/** A subscription to some topics of an owner. */
export interface Listener {
  readonly owner: string;
  readonly topics: ReadonlySet<string>;
  /** Called for each event, in order. */
  readonly send: (event: NumberedEvent) => void;
}

interface ChangedRun {
  readonly owner: string;
  readonly id: string;
  readonly changes: Set<StudioChange>;
}

/** Latest events that are remembered for pages that reconnect. */
const maxRemembered = 10_000;

/** Runs with a version of their own. */
const maxVersions = 50_000;

/** Changes of a run within this time are one event. */
const publishMs = 250;

/**
 * Publishes to open pages what has changed.
 *
 * - An event names a run and its version, never a value: pages fetch what they show. So only the latest event of a
 *   kind and run is remembered.
 * - Events have numbers. A page that reconnects with the number of its last event gets those it missed, or is asked to
 *   ask for everything again.
 */
export class EventHub {
  readonly #clock: Clock;
  readonly #logs: Pick<LogsTable, "logOfModel">;
  /** Numbers of another process mean nothing here. */
  readonly #epoch = randomBytes(4).toString("hex");
  readonly #listeners = new Set<Listener>();
  readonly #latest = new Map<string, NumberedEvent>();
  readonly #changed = new Map<string, ChangedRun>();
  readonly #versions = new LruMap<string, number>(maxVersions);
  #cancelPublish: (() => void) | undefined;
  #isClosed = false;
  #next = 1;
  #version = 0;
  /** Events before this one are no longer remembered. */
  #since = 1;

  constructor(clock: Clock, logs: Pick<LogsTable, "logOfModel">) {
    this.#clock = clock;
    this.#logs = logs;
  }

  /** True while a page is open. */
  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }

  /** Grows with every change of a run; of one that is not remembered, with every change of any. */
  versionOf(run: string): number {
    return this.#versions.get(run) ?? (this.#version > maxVersions ? this.#version : 0);
  }

  /** Publishes soon that something of a run has changed; its row in lists always may have. */
  noteChange(owner: string, run: string, ...changes: readonly StudioChange[]): void {
    this.#versions.set(run, ++this.#version);
    const key = JSON.stringify([owner, run]);
    const changed = this.#changed.get(key) ?? { owner, id: run, changes: new Set() };
    this.#changed.set(key, changed);
    for (const change of changes) changed.changes.add(change);
    if (this.#isClosed) return;
    this.#cancelPublish ??= this.#clock.after(publishMs, () => {
      this.#cancelPublish = undefined;
      this.#publishChanged();
    });
  }

  publish(owner: string, topic: string, event: StudioEvent): void {
    const { kind, ...rest } = event;
    const data = JSON.stringify(rest);
    const key = JSON.stringify([owner, topic, kind, "run" in event ? event.run : data]);
    const numbered = { n: this.#next++, owner, topic, key, kind, data };
    this.#latest.delete(key);
    this.#latest.set(key, numbered);
    if (this.#latest.size > maxRemembered) {
      const [oldest] = this.#latest.values();
      this.#latest.delete(oldest!.key);
      this.#since = oldest!.n + 1;
    }
    for (const listener of this.#listeners) {
      if (matches(listener, numbered)) listener.send(numbered);
    }
  }

  /** Subscribes; events since the cursor are sent at once. */
  listen(listener: Listener, cursor: string | null): { isReset: boolean; stop: () => void } {
    const [epoch, number] = cursor?.split("-") ?? [];
    const n = Number(number);
    const isKnown = epoch === this.#epoch && Number.isInteger(n) && n + 1 >= this.#since;
    for (const event of isKnown ? this.#latest.values() : []) {
      if (event.n > n && matches(listener, event)) listener.send(event);
    }
    this.#listeners.add(listener);
    return {
      isReset: cursor !== null && !isKnown,
      stop: () => void this.#listeners.delete(listener),
    };
  }

  /** The cursor of an event, or of now. */
  cursor(n = this.#next - 1): string {
    return `${this.#epoch}-${n}`;
  }

  /** Publishes nothing more; what still runs may note changes after the database is closed. */
  close(): void {
    this.#isClosed = true;
    this.#cancelPublish?.();
  }

  #publishChanged(): void {
    for (const { owner, id, changes } of this.#changed.values()) {
      // A model is shown as a part of the run that logs it.
      const shown = this.#logs.logOfModel(id) ?? id;
      const event = { run: shown, version: this.versionOf(id) };
      this.publish(owner, "runs", { kind: "run", ...event });
      for (const kind of changes) {
        if (kind === "checkpoint") this.publish(owner, "runs", { kind, ...event });
        else
          for (const run of new Set([shown, id]))
            this.publish(owner, `run:${run}`, { kind, ...event, run });
      }
    }
    this.#changed.clear();
  }
}

function matches(listener: Listener, { owner, topic }: NumberedEvent): boolean {
  return (listener.owner === owner || owner === everyone) && listener.topics.has(topic);
}
