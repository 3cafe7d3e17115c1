/** Weighted sum and weight of all values before, at the last of them. */
export interface SmootherState {
  readonly sum: number;
  readonly weight: number;
  readonly x: number;
}

/**
 * An exponential mean whose half-life is in units of x, so that runs that log more or less often match. It
 * begins with the first value and not with zero; a constant stays a constant; what is not finite is skipped.
 */
export class Smoother {
  readonly #halfLife: number;
  #sum = 0;
  #weight = 0;
  #x = 0;
  // Most points are as far apart as those before: powers are slow.
  #gap = 0;
  #decay = 1;

  constructor(halfLife: number, state: SmootherState = { sum: 0, weight: 0, x: 0 }) {
    this.#halfLife = halfLife;
    this.state = state;
  }

  /** Where it stands, to go on from later. */
  get state(): SmootherState {
    return { sum: this.#sum, weight: this.#weight, x: this.#x };
  }

  set state({ sum, weight, x }: SmootherState) {
    this.#sum = sum;
    this.#weight = weight;
    this.#x = x;
  }

  /** The mean so far; NaN before the first finite value. */
  get value(): number {
    return this.#sum / this.#weight;
  }

  add(x: number, value: number): void {
    if (!Number.isFinite(value)) return;
    const gap = this.#weight === 0 ? 0 : Math.max(0, x - this.#x);
    if (gap !== this.#gap) {
      this.#gap = gap;
      this.#decay = 2 ** -(gap / this.#halfLife);
    }
    this.#sum = bounded(this.#sum * this.#decay + value);
    this.#weight = this.#weight * this.#decay + 1;
    this.#x = x;
  }
}

/** A sum that has become too large for a number, which neither a column nor a later mean could take, as the largest. */
export function bounded(sum: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, sum));
}
