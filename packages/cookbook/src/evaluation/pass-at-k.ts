const usualK = [1, 5, 10, 25, 50, 100];

/** The chance that one of `k` draws, out of `samples` of which `correct` are right, is right. */
export function passAtK(samples: number, correct: number, k: number): number {
  if (samples - correct < k) return 1;
  // 1 - C(n - c, k) / C(n, k) as a product, because the binomials do not fit into numbers.
  let allWrong = 1;
  for (let index = 0; index < k; index++) {
    allWrong *= (samples - correct - index) / (samples - index);
  }
  return 1 - allWrong;
}

/** The values of `k` to report for a number of samples. */
export function passAtKValues(samples: number): number[] {
  return [...new Set([...usualK.filter((k) => k <= samples), samples])];
}
