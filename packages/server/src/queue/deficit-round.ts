/** What every turn costs at least: small requests are not free. */
const leastCost = 64;

/** How much more than others somebody may owe who is preferred. */
const maxAhead = 4096;

/**
 * Deficit round robin: whoever had a turn owes its cost and comes again once the debt is paid off. All pay
 * off at the same pace, so many small turns weigh as much as one large turn. A debt outlives the waiting:
 * nobody gets around it by asking for one turn at a time.
 */
export class DeficitRound {
  /** What each still owes, those whose last turn is longest ago first. */
  readonly #debts = new Map<string, number>();

  /**
   * Whose turn it is among those that are ready: time in which nobody could go is skipped. Those that
   * `isPreferred` names go before others while they owe little more.
   */
  next(
    ready: ReadonlySet<string>,
    isPreferred: (key: string) => boolean = () => false,
  ): string | undefined {
    for (const key of ready) if (!this.#debts.has(key)) this.#debts.set(key, 0);
    this.#payOff(Math.min(...[...ready].map((key) => this.#debts.get(key) ?? 0)), ready);
    const candidates = [...this.#debts].filter(([key]) => ready.has(key));
    const [first] = candidates
      .filter(([key, debt]) => debt === 0 || (debt < maxAhead && isPreferred(key)))
      .toSorted(([a, aDebt], [b, bDebt]) =>
        isPreferred(a) === isPreferred(b) ? aDebt - bDebt : isPreferred(a) ? -1 : 1,
      );
    return first?.[0];
  }

  /** Puts the cost of a turn on the account of who had it. */
  charge(key: string, cost: number): void {
    const debt = (this.#debts.get(key) ?? 0) + Math.max(leastCost, cost);
    this.#debts.delete(key);
    this.#debts.set(key, debt);
  }

  #payOff(amount: number, ready: ReadonlySet<string>): void {
    for (const [key, debt] of this.#debts) {
      const left = Math.max(0, debt - amount);
      if (left > 0 || ready.has(key)) this.#debts.set(key, left);
      else this.#debts.delete(key);
    }
  }
}
