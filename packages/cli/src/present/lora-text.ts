/** The LoRA column of a list. */
export function loraColumn(isLora: boolean, rank: number | null): string {
  if (!isLora) return "No";
  return rank === null ? "Yes" : `Rank ${rank}`;
}

/** The LoRA row of one thing's properties. */
export function loraProperty(isLora: boolean, rank: number | null): string {
  if (!isLora) return "No";
  return rank === null ? "Yes" : `Yes (Rank ${rank})`;
}
