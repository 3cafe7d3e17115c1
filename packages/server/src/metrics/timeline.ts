/** Work in one time slot. */
export interface Slot {
  readonly at: number;
  waitMs: number;
  trainingMs: number;
  samplingMs: number;
  trainedTokens: number;
  sampledTokens: number;
}

/** Length of a slot. */
export const slotMs = 10_000;
const maxSlots = 60;

/** The engine's work in the last ten minutes, by end time. */
export class Timeline {
  readonly #slots = new Map<number, Slot>();

  /** Counts finished work. */
  note(
    kind: "training" | "sampling",
    work: {
      readonly endedAt: number;
      readonly waitMs: number;
      readonly tookMs: number;
      readonly tokens: number;
    },
  ): void {
    const slot = this.#slotAt(work.endedAt);
    slot.waitMs += work.waitMs;
    if (kind === "training") {
      slot.trainingMs += work.tookMs;
      slot.trainedTokens += work.tokens;
    } else {
      slot.samplingMs += work.tookMs;
      slot.sampledTokens += work.tokens;
    }
  }

  /** The slots up to now, empty ones too, oldest first. */
  slots(now: number): Slot[] {
    const last = Math.floor(now / slotMs) * slotMs;
    return Array.from({ length: maxSlots }, (_, index) => {
      const at = last - (maxSlots - 1 - index) * slotMs;
      return this.#slots.get(at) ?? emptySlot(at);
    });
  }

  #slotAt(time: number): Slot {
    const at = Math.floor(time / slotMs) * slotMs;
    let slot = this.#slots.get(at);
    if (!slot) {
      this.#slots.set(at, (slot = emptySlot(at)));
      for (const known of this.#slots.keys()) {
        if (known < at - maxSlots * slotMs) this.#slots.delete(known);
      }
    }
    return slot;
  }
}

function emptySlot(at: number): Slot {
  return { at, waitMs: 0, trainingMs: 0, samplingMs: 0, trainedTokens: 0, sampledTokens: 0 };
}
