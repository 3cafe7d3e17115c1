import { ArgumentError } from "tinker-ts";

/** Which members of a group are compared: every ordered pair, or every pair once. */
export type TournamentPattern = "all_pairs_both_ways" | "all_pairs_one_way";

/** The matches of a group: pairs of members of the same chunk of consecutive members. */
export function tournamentPairs(
  members: number,
  { pattern, chunkSize }: { readonly pattern: TournamentPattern; readonly chunkSize: number },
): [first: number, second: number][] {
  if (!Number.isInteger(chunkSize) || chunkSize < 1) {
    throw new ArgumentError("chunkSize", `must be an integer of at least 1, not ${chunkSize}`);
  }
  const pairs: [number, number][] = [];
  for (let first = 0; first < members; first++) {
    const chunk = Math.floor(first / chunkSize) * chunkSize;
    const from = pattern === "all_pairs_one_way" ? first + 1 : chunk;
    for (let second = from; second < Math.min(chunk + chunkSize, members); second++) {
      if (second !== first) pairs.push([first, second]);
    }
  }
  return pairs;
}

/** What each member won less what it lost, per match; 0 without a match. A score above 0 is for the second. */
export function tournamentScores(
  members: number,
  pairs: readonly (readonly [number, number])[],
  scores: readonly number[],
): number[] {
  const sums = new Float64Array(members);
  const counts = new Float64Array(members);
  for (const [match, [first, second]] of pairs.entries()) {
    sums[first]! -= scores[match]!;
    sums[second]! += scores[match]!;
    counts[first]!++;
    counts[second]!++;
  }
  return Array.from(sums, (sum, member) => (counts[member] === 0 ? 0 : sum / counts[member]!));
}
