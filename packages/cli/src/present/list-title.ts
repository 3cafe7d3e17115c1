/** `3 training runs`, `1 checkpoint`, `No checkpoints found`, and what is not shown. */
export function listTitle(
  noun: string,
  shown: number,
  options: { readonly where?: string; readonly hidden?: number } = {},
): string {
  const { where = "", hidden = 0 } = options;
  if (shown === 0) return `No ${noun}s found${where}`;
  const more = hidden > 0 ? ` (${hidden} more not shown, use --limit to see more)` : "";
  return `${shown} ${noun}${shown === 1 ? "" : "s"}${where}${more}`;
}
