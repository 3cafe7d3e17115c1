import { DeficitRound } from "./deficit-round.js";
import type { QueueNote } from "./queue-note.js";

/** A turn that somebody has; it must be ended. */
export interface Turn {
  /** Gives the turn back and tells what it came to, in tokens. */
  end(cost: number): void;
}

/** Those of one owner who wait, by model, and how they share among themselves. */
interface OwnerLine {
  readonly round: DeficitRound;
  readonly waiting: Map<string, (turn: Turn | null) => void>;
}

/**
 * Turns of models at something that is used by few at a time.
 *
 * - Owners share it by tokens, and so do the models of one owner.
 * - Among the models of one owner those are preferred that are at hand, within bounds: a turn of one that has
 *   to be brought back first costs more.
 * - A turn is not taken away: one waits for the turn under way, and after it for owners who have used
 *   less, never for everything that others have in line.
 */
export class FairTurns {
  readonly #width: number;
  readonly #isAtHand: (modelId: string) => boolean;
  readonly #owners = new DeficitRound();
  readonly #lines = new Map<string, OwnerLine>();
  #running = 0;
  #isPaused = false;

  /** `width` is how many may have a turn at the same time. */
  constructor(width: number, isAtHand: (modelId: string) => boolean = () => true) {
    this.#width = width;
    this.#isAtHand = isAtHand;
  }

  /** Waits for a turn; null when no turns are given any more, because the server stops. */
  async take(owner: string, modelId: string, signal: AbortSignal): Promise<Turn | null> {
    signal.throwIfAborted();
    if (this.#isPaused) return null;
    const line = this.#lines.get(owner) ?? { round: new DeficitRound(), waiting: new Map() };
    this.#lines.set(owner, line);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        line.waiting.delete(modelId);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      line.waiting.set(modelId, (turn) => {
        signal.removeEventListener("abort", giveUp);
        line.waiting.delete(modelId);
        resolve(turn);
      });
      this.#giveMore();
    });
  }

  /** Why a model has no turn yet; undefined when it does not wait for one. */
  note(owner: string, modelId: string): QueueNote | undefined {
    const own = this.#lines.get(owner)?.waiting;
    if (!own?.has(modelId)) return undefined;
    const owners = this.#ready().size;
    const share = owners === 1 ? "" : `, and ${owners} owners take turns`;
    return {
      queueState: "paused_capacity",
      reason: `waiting for its turn: ${own.size} of your models wait${share}`,
    };
  }

  /** Gives no more turns; what waits stays undone. */
  pause(): void {
    this.#isPaused = true;
    for (const { waiting } of this.#lines.values()) for (const go of waiting.values()) go(null);
  }

  #giveMore(): void {
    while (this.#running < this.#width) {
      const owner = this.#owners.next(this.#ready());
      const line = this.#lines.get(owner ?? "");
      const modelId = line?.round.next(new Set(line.waiting.keys()), this.#isAtHand);
      if (owner === undefined || modelId === undefined) return;
      this.#running++;
      line?.waiting.get(modelId)?.({ end: (cost) => this.#end(owner, modelId, cost) });
    }
  }

  #end(owner: string, modelId: string, cost: number): void {
    this.#running--;
    this.#owners.charge(owner, cost);
    this.#lines.get(owner)?.round.charge(modelId, cost);
    this.#giveMore();
  }

  #ready(): Set<string> {
    const waiting = [...this.#lines].filter(([, line]) => line.waiting.size > 0);
    return new Set(waiting.map(([owner]) => owner));
  }
}
