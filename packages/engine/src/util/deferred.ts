/** A promise together with the functions that settle it. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  #resolve: ((value: T) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(value: T): void {
    this.#resolve?.(value);
  }

  reject(reason: unknown): void {
    this.#reject?.(reason);
  }
}
