import { toConversation, type Conversation } from "./conversation.js";
import { DataError } from "./data-error.js";
import { BrokenRow, readRows, rowsOf, type HubSource, type Row } from "./rows.js";

/** Where rows come from: a file by its name, a data set as `hf:ORG/NAME[:SPLIT]`, or values of the program's own. */
export type RowSource = string | Iterable<unknown> | AsyncIterable<unknown>;

/** How rows are read. */
export interface LoadOptions {
  /** Turns a row into a conversation; undefined leaves the row out. @default the known forms */
  readonly map?: ((row: never) => Conversation | undefined) | undefined;
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

/** A row that cannot be used. */
export interface BadRow {
  readonly place: string;
  readonly problem: string;
}

/** A conversation and where it came from. */
export interface PlacedConversation extends Conversation {
  /** For messages to people: `data.jsonl:12`. */
  readonly place?: string | undefined;
}

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
  const conversations: PlacedConversation[] = [];
  const badRows: BadRow[] = [];
  for await (const entry of streamConversations(source, options)) {
    if ("problem" in entry) badRows.push(entry);
    else conversations.push(entry);
  }
  const name = typeof source === "string" ? source : "the data";
  if (badRows.length > 0 && options.badRows !== "skip") throw badRowsError(badRows);
  if (conversations.length === 0) {
    const hint = badRows.length > 0 ? `; ${badRows[0]!.place}: ${badRows[0]!.problem}` : "";
    throw new DataError(`has no conversations${hint}`, { place: name });
  }
  return { conversations, badRows };
}

/** Reads conversations one by one, for data that does not fit into memory; bad rows come as such. */
export async function* streamConversations(
  source: RowSource,
  options: LoadOptions = {},
): AsyncGenerator<PlacedConversation | BadRow> {
  const { map = toConversation } = options;
  const rows = typeof source === "string" ? readRows(source, options.hub) : rowsOf(source);
  let left = options.maxRows ?? Number.POSITIVE_INFINITY;
  for await (const row of rows) {
    if (left-- <= 0) return;
    const entry = readRow(row, map);
    if (entry) yield entry;
  }
}

function readRow(
  { value, place }: Row,
  map: (row: never) => Conversation | undefined,
): PlacedConversation | BadRow | undefined {
  if (value instanceof BrokenRow) return { place, problem: value.problem };
  try {
    const conversation = map(value as never);
    return conversation && { ...conversation, place };
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
