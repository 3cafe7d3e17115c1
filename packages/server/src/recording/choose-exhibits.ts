/** What the choice goes by. */
export interface Candidate {
  readonly nll: number | null;
  readonly reward: number | null;
  readonly advantage: number | null;
}

/** Exhibits of a step that are kept unless everything is. */
export const keptPerStep = 8;

/**
 * Which of many to keep: the first, the one with the worst nll, best and worst reward, the largest advantage
 * either way, and for the rest an even mix that is the same for the same seed. In order.
 */
export function chooseExhibits(candidates: readonly Candidate[], seed: string): number[] {
  if (candidates.length <= keptPerStep) return candidates.map((_, index) => index);
  const most = (score: (candidate: Candidate) => number | null): number => {
    let found = -1;
    let best = Number.NEGATIVE_INFINITY;
    for (const [index, candidate] of candidates.entries()) {
      const value = score(candidate);
      if (value !== null && value > best) {
        best = value;
        found = index;
      }
    }
    return found;
  };
  const chosen = new Set([
    0,
    most(({ nll }) => nll),
    most(({ reward }) => reward),
    most(({ reward }) => (reward !== null ? -reward : null)),
    most(({ advantage }) => (advantage === null ? null : Math.abs(advantage))),
  ]);
  chosen.delete(-1);
  let state = hash(seed);
  while (chosen.size < keptPerStep) {
    state = next(state);
    chosen.add(state % candidates.length);
  }
  return [...chosen].toSorted((a, b) => a - b);
}

function hash(text: string): number {
  let state = 2166136261;
  for (const character of text) {
    state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16777619) >>> 0;
  }
  return state;
}

function next(state: number): number {
  let mixed = (state + 0x9e3779b9) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) >>> 0;
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
