/** Two neighbouring parts that become one; each part is a string of bytes, one character per byte. */
export type Merge = readonly [left: string, right: string];

interface Word {
  parts: string[];
  readonly count: number;
}

/**
 * Learns byte-pair merges: the most frequent pair of neighbours becomes one part, again and again.
 *
 * Words are cut into bytes first, so any text can be encoded. Among equally frequent pairs the one that
 * sorts first wins, which makes the result depend on the counts alone.
 */
export function trainBpe(wordCounts: ReadonlyMap<string, number>, mergeCount: number): Merge[] {
  const words: Word[] = [...wordCounts].map(([word, count]) => ({
    parts: Buffer.from(word).toString("latin1").split(""),
    count,
  }));
  const pairs = new PairCounts();
  words.forEach((word, index) => pairs.add(word, index, 1));
  const merges: Merge[] = [];
  while (merges.length < mergeCount) {
    const merge = pairs.mostFrequent();
    if (merge === undefined) break;
    merges.push(merge);
    for (const index of pairs.wordsWith(merge)) {
      const word = words[index];
      if (word === undefined) continue;
      pairs.add(word, index, -1);
      word.parts = applyMerge(word.parts, merge);
      pairs.add(word, index, 1);
    }
  }
  return merges;
}

/** Joins every occurrence of the pair, from left to right. */
function applyMerge(parts: readonly string[], [left, right]: Merge): string[] {
  const merged: string[] = [];
  for (let i = 0; i < parts.length; i++) {
    const isPair = parts[i] === left && parts[i + 1] === right;
    merged.push(isPair ? left + right : (parts[i] ?? ""));
    if (isPair) i += 1;
  }
  return merged;
}

/** How often each pair of neighbours occurs, and in which words. */
class PairCounts {
  readonly #pairs = new Map<string, { merge: Merge; count: number; words: Set<number> }>();

  add(word: Word, index: number, sign: 1 | -1): void {
    for (let i = 0; i + 1 < word.parts.length; i++) {
      const merge: Merge = [word.parts[i] ?? "", word.parts[i + 1] ?? ""];
      // A length makes the key unambiguous.
      const key = `${merge[0].length} ${merge[0]}${merge[1]}`;
      let pair = this.#pairs.get(key);
      if (pair === undefined) {
        pair = { merge, count: 0, words: new Set() };
        this.#pairs.set(key, pair);
      }
      pair.count += sign * word.count;
      pair.words.add(index);
    }
  }

  mostFrequent(): Merge | undefined {
    let best: { merge: Merge; count: number } | undefined;
    for (const pair of this.#pairs.values()) {
      if (pair.count > (best?.count ?? 1) || (pair.count === best?.count && precedes(pair, best))) {
        best = pair;
      }
    }
    return best?.merge;
  }

  wordsWith([left, right]: Merge): readonly number[] {
    return [...(this.#pairs.get(`${left.length} ${left}${right}`)?.words ?? [])];
  }
}

function precedes(a: { merge: Merge }, b: { merge: Merge }): boolean {
  return a.merge[0] < b.merge[0] || (a.merge[0] === b.merge[0] && a.merge[1] < b.merge[1]);
}
