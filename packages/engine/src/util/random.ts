/**
 * A stream of random numbers that is fixed by its key: the same words always give the same numbers, on
 * every machine, and streams with different keys are independent. (xoshiro128**, seeded by splitmix32.)
 */
export class RandomStream {
  readonly #state: Uint32Array;

  constructor(...key: readonly number[]) {
    let seed = 0x9e3779b9;
    for (const word of key) {
      seed = mix(seed ^ (word >>> 0));
      seed = mix(seed ^ Math.floor(word / 2 ** 32));
    }
    this.#state = Uint32Array.from({ length: 4 }, () => {
      seed = (seed + 0x9e3779b9) | 0;
      return mix(seed);
    });
  }

  /** Uniform in [0, 1), with 53 bits. */
  next(): number {
    const high = this.#word() >>> 5;
    const low = this.#word() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** Normally distributed with mean 0 and deviation 1 (Box and Muller's method). */
  nextNormal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.next()));
    return radius * Math.cos(2 * Math.PI * this.next());
  }

  #word(): number {
    const s = this.#state;
    const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = s;
    const result = Math.imul(rotateLeft(Math.imul(s1, 5), 7), 9);
    const shifted = s1 << 9;
    const next2 = s2 ^ s0;
    const next3 = s3 ^ s1;
    s[1] = s1 ^ next2;
    s[0] = s0 ^ next3;
    s[2] = next2 ^ shifted;
    s[3] = rotateLeft(next3, 11);
    return result >>> 0;
  }
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function mix(value: number): number {
  let word = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
  return word ^ (word >>> 15);
}
