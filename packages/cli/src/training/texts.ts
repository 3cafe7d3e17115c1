/** An object with snake_case names, as the JSON of commands has them. */
export function snakeCase(value: object): object {
  const snake = (name: string): string => name.replace(/[A-Z]/g, (a) => `_${a.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [snake(name), entry]));
}

/** A text on one line, cut to 100 characters. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}

/** A number with separators for thousands. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** The steps of a run over rows: `30 steps of 4 rows, 8 epochs`. */
export function stepsText(plan: {
  readonly steps: number;
  readonly batchSize: number;
  readonly epochs: number;
}): string {
  const { steps, batchSize, epochs } = plan;
  return `${plural(steps, "step")} of ${plural(batchSize, "row")}, ${plural(epochs, "epoch")}`;
}

/** A count with its noun. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
