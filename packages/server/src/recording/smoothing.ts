/**
 * An exponential mean whose half-life is in units of x, so that runs that log more or less often match. It
 * begins with the first value and not with zero; a constant stays a constant; what is not finite is skipped.
 */
export class Smoother {
  readonly #halfLife: number;
  #sum: number;
  #weight: number;
  #x: number;

  constructor(halfLife: number, state = { sum: 0, weight: 0, x: 0 }) {
    this.#halfLife = halfLife;
    this.#sum = state.sum;
    this.#weight = state.weight;
    this.#x = state.x;
  }

  /** Where it stands, to go on from later. */
  get state(): { sum: number; weight: number; x: number } {
    return { sum: this.#sum, weight: this.#weight, x: this.#x };
  }

  /** The mean so far; NaN before the first finite value. */
  get value(): number {
    return this.#sum / this.#weight;
  }

  add(x: number, value: number): void {
    if (!Number.isFinite(value)) return;
    const decay = this.#weight === 0 ? 0 : 2 ** -(Math.max(0, x - this.#x) / this.#halfLife);
    this.#sum = this.#sum * decay + value;
    this.#weight = this.#weight * decay + 1;
    this.#x = x;
  }
}
