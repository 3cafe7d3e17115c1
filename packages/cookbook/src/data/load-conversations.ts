import { toConversation, type Conversation } from "./conversation.js";
import { DataError } from "./data-error.js";
import { BrokenRow, readRows, rowsOf, type HubSource, type Row } from "./rows.js";

/** The source of rows: the name of a file, a data set as `hf:ORG/NAME[:SPLIT]`, or values of the program. */
export type RowSource = string | Iterable<unknown> | AsyncIterable<unknown>;

/** Options of reading rows. */
export interface RowOptions {
  /**
   * The handling of a bad row: an error that names it, or a report while it is skipped.
   * @default "fail"
   */
  readonly badRows?: "fail" | "skip" | undefined;
  /** The part of a data set of the hub to read. */
  readonly hub?: HubSource | undefined;
  /** The maximum number of rows to read. */
  readonly maxRows?: number | undefined;
}

/** Options of reading conversations. */
export interface LoadOptions extends RowOptions {
  /** Turns a row into a conversation; undefined leaves the row out. @default the known forms */
  readonly map?: ((row: never) => Conversation | undefined) | undefined;
}

/** A bad row and its problem. */
export interface BadRow {
  readonly place: string;
  readonly problem: string;
}

/** The place of a row in its source. */
export interface Placed {
  /** For messages: `data.jsonl:12`. */
  readonly place?: string | undefined;
}

/** A conversation and its place in its source. */
export interface PlacedConversation extends Conversation, Placed {}

/** The conversations of a source, and its bad rows. */
export interface LoadedConversations {
  readonly conversations: readonly PlacedConversation[];
  readonly badRows: readonly BadRow[];
}

const reportedRows = 3;

/** Reads all conversations of a source. */
export async function loadConversations(
  source: RowSource,
  options: LoadOptions = {},
): Promise<LoadedConversations> {
  const { map = toConversation } = options;
  const { rows, badRows } = await loadRows<Conversation>(source, map, options, "conversations");
  return { conversations: rows, badRows };
}

/** Reads conversations one by one, for data larger than memory; bad rows are returned in their place. */
export function streamConversations(
  source: RowSource,
  options: LoadOptions = {},
): AsyncGenerator<PlacedConversation | BadRow> {
  return streamRows<Conversation>(source, options.map ?? toConversation, options);
}

/** Reads all rows of a source through `map`; `noun` names them in the error about a source without rows. */
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
    throw new DataError(`no ${noun} found${hint}`, { place });
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

/** One error for all bad rows, with the problems of the first three. */
export function badRowsError(badRows: readonly BadRow[]): DataError {
  const [first, ...others] = badRows
    .slice(0, reportedRows)
    .map((row) => `${row.place}: ${row.problem}`);
  const more = badRows.length - reportedRows;
  const rest = [...others, ...(more > 0 ? [`and ${more} more bad rows`] : [])];
  return new DataError([first, ...rest].join("; "));
}
