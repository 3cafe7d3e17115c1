/** The known word that was probably meant, or undefined when none is near. */
export function closest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best && best.distance <= Math.max(1, Math.floor(best.candidate.length / 3))
    ? best.candidate
    : undefined;
}

/** The number of letters to add, drop or replace, and of neighbours to swap. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    const above = rows[row - 1]!;
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = a[row - 2] === b[column - 1] && a[row - 1] === b[column - 2];
      current.push(
        Math.min(
          above[column]! + 1,
          current[column - 1]! + 1,
          above[column - 1]! + (isSame ? 0 : 1),
          isSwapped && row > 1 && column > 1 ? rows[row - 2]![column - 2]! + 1 : Infinity,
        ),
      );
    }
    rows.push(current);
  }
  return rows[a.length]![b.length]!;
}
