import { toConversation, type Conversation } from "./conversation.js";
import { DataError } from "./data-error.js";
import { BrokenRow, readRows, rowsOf, type HubSource, type Row } from "./rows.js";

/** Where rows come from: a file by its name, a data set as `hf:ORG/NAME[:SPLIT]`, or values of the program's own. */
export type RowSource = string | Iterable<unknown> | AsyncIterable<unknown>;

/** How rows are read, whatever they become. */
export interface RowOptions {
  /**
   * What becomes of a row that cannot be read: an error that names it, or it is left out and reported.
   * @default "fail"
   */
  readonly badRows?: "fail" | "skip" | undefined;
  /** More about a data set of the hub. */
  readonly hub?: HubSource | undefined;
  /** Reads this many rows at most. */
  readonly maxRows?: number | undefined;
}

/** How conversations are read. */
export interface LoadOptions extends RowOptions {
  /** Turns a row into a conversation; undefined leaves the row out. @default the known forms */
  readonly map?: ((row: never) => Conversation | undefined) | undefined;
}

/** A row that cannot be used. */
export interface BadRow {
  readonly place: string;
  readonly problem: string;
}

/** Where a row came from. */
export interface Placed {
  /** For messages to people: `data.jsonl:12`. */
  readonly place?: string | undefined;
}

/** A conversation and where it came from. */
export interface PlacedConversation extends Conversation, Placed {}

/** The conversations of a source, and what could not be read. */
export interface LoadedConversations {
  readonly conversations: readonly PlacedConversation[];
  readonly badRows: readonly BadRow[];
}

const toldRows = 3;

/** Reads all conversations of a source. */
export async function loadConversations(
  source: RowSource,
  options: LoadOptions = {},
): Promise<LoadedConversations> {
  const { map = toConversation } = options;
  const { rows, badRows } = await loadRows<Conversation>(source, map, options, "conversations");
  return { conversations: rows, badRows };
}

/** Reads conversations one by one, for data that does not fit into memory; bad rows come as such. */
export function streamConversations(
  source: RowSource,
  options: LoadOptions = {},
): AsyncGenerator<PlacedConversation | BadRow> {
  return streamRows<Conversation>(source, options.map ?? toConversation, options);
}

/** Reads all rows of a source as what `map` makes of them; `noun` is what they are called when there are none. */
export async function loadRows<T extends object>(
  source: RowSource,
  map: (row: never) => T | undefined,
  options: RowOptions,
  noun: string,
): Promise<{ readonly rows: readonly (T & Placed)[]; readonly badRows: readonly BadRow[] }> {
  const rows: (T & Placed)[] = [];
  const badRows: BadRow[] = [];
  for await (const entry of streamRows(source, map, options)) {
    if ("problem" in entry) badRows.push(entry);
    else rows.push(entry);
  }
  if (badRows.length > 0 && options.badRows !== "skip") throw badRowsError(badRows);
  if (rows.length === 0) {
    const hint = badRows.length > 0 ? `; ${badRows[0]!.place}: ${badRows[0]!.problem}` : "";
    const place = typeof source === "string" ? source : "the data";
    throw new DataError(`has no ${noun}${hint}`, { place });
  }
  return { rows, badRows };
}

async function* streamRows<T extends object>(
  source: RowSource,
  map: (row: never) => T | undefined,
  { hub, maxRows = Number.POSITIVE_INFINITY }: RowOptions,
): AsyncGenerator<(T & Placed) | BadRow> {
  let left = maxRows;
  for await (const row of typeof source === "string" ? readRows(source, hub) : rowsOf(source)) {
    if (left-- <= 0) return;
    const entry = readRow(row, map);
    if (entry) yield entry;
  }
}

function readRow<T extends object>(
  { value, place }: Row,
  map: (row: never) => T | undefined,
): (T & Placed) | BadRow | undefined {
  if (value instanceof BrokenRow) return { place, problem: value.problem };
  try {
    const made = map(value as never);
    return made && { ...made, place };
  } catch (error) {
    return { place, problem: error instanceof DataError ? error.problem : String(error) };
  }
}

/** One error for all bad rows: the first ones in words, the rest as a number. */
export function badRowsError(badRows: readonly BadRow[]): DataError {
  const [first, ...others] = badRows
    .slice(0, toldRows)
    .map((row) => `${row.place}: ${row.problem}`);
  const more = badRows.length - toldRows;
  const rest = [...others, ...(more > 0 ? [`and ${more} more bad rows`] : [])];
  return new DataError([first, ...rest].join("; "));
}
