import { DataError, loadRows, toMessages, type BadRow, type Placed } from "../data/index.js";
import type { RowOptions, RowSource } from "../data/index.js";
import { splitThinking, type Message } from "../renderers/index.js";

/** Two completions of one prompt. */
export interface Comparison {
  /** The prompt of both completions. */
  readonly prompt: readonly Message[];
  /** The first. */
  readonly completionA: readonly Message[];
  /** The second. */
  readonly completionB: readonly Message[];
}

/** Which completion is better. */
export type PreferenceLabel = "A" | "B" | "Tie";

/** A comparison with its result. */
export interface LabeledComparison extends Comparison {
  /** The better one. */
  readonly label: PreferenceLabel;
}

/** A single completion with a judgement. */
export interface JudgedCompletion {
  /** The prompt. */
  readonly prompt: readonly Message[];
  /** The answer. */
  readonly completion: readonly Message[];
  /** True for a desirable completion. */
  readonly desirable: boolean;
}

/** The same comparison with the completions in the other order. */
export function swapped<T extends Comparison & { readonly label?: PreferenceLabel }>(row: T): T {
  const label = row.label === "A" ? "B" : row.label === "B" ? "A" : row.label;
  return {
    ...row,
    completionA: row.completionB,
    completionB: row.completionA,
    ...(label && { label }),
  };
}

/** Reads all comparisons of a source. */
export async function loadComparisons(
  source: RowSource,
  options: RowOptions & {
    /** Turns a row into a comparison; undefined leaves the row out. @default the known forms */
    readonly map?: ((row: never) => LabeledComparison | undefined) | undefined;
  } = {},
): Promise<{
  readonly rows: readonly (LabeledComparison & Placed)[];
  readonly badRows: readonly BadRow[];
}> {
  return loadRows<LabeledComparison>(source, options.map ?? toComparison, options, "comparisons");
}

type Fields = Readonly<Record<string, unknown>>;

/** The known forms of rows, each with its required fields. */
const shapes: readonly {
  readonly fields: readonly string[];
  readonly read: (row: Fields) => LabeledComparison;
}[] = [
  { fields: ["comparison", "label"], read: readNested },
  { fields: ["prompt", "chosen", "rejected"], read: readChosen },
  { fields: ["chosen", "rejected"], read: readChosen },
  {
    fields: ["prompt", "completion_a", "completion_b", "label"],
    read: (row) => readFlat(row, "completion_a", "completion_b"),
  },
  {
    fields: ["prompt", "response_a", "response_b", "label"],
    read: (row) => readFlat(row, "response_a", "response_b"),
  },
];

/** Reads a row in one of the known forms; errors name the field. */
export function toComparison(row: unknown): LabeledComparison {
  const fields = fieldsOf(row);
  const shape = shapes.find((entry) => entry.fields.every((name) => fields[name] !== undefined));
  if (!shape) {
    const found = Object.keys(fields).join(", ") || "none";
    const known = shapes.map((entry) => entry.fields.join(" + ")).join("; ");
    throw new DataError(`unknown row format with the fields ${found}; expected one of: ${known}`);
  }
  const comparison = shape.read(fields);
  if (comparison.prompt.length === 0) {
    throw new DataError("no prompt: the completions share no first messages");
  }
  const sides = [comparison.completionA, comparison.completionB];
  if (sides.some((side) => !side.some(({ role }) => role === "assistant"))) {
    throw new DataError('a completion has no message of the role "assistant"');
  }
  if (comparison.label !== "Tie" && JSON.stringify(sides[0]) === JSON.stringify(sides[1])) {
    throw new DataError("identical completions cannot be ranked");
  }
  return comparison;
}

/** Reads a judged completion (prompt + completion + label), or both sides of a comparison. */
export function toJudged(row: unknown): readonly JudgedCompletion[] {
  const fields = fieldsOf(row);
  const { label } = fields;
  if (fields["completion"] === undefined || fields["prompt"] === undefined) {
    return judgedOf(toComparison(row));
  }
  if (typeof label !== "boolean" && label !== 0 && label !== 1) {
    throw new DataError(`label: must be true or false, not ${JSON.stringify(label) ?? "missing"}`);
  }
  const prompt = withSystem(fields, readSide(fields, "prompt", "user"));
  const completion = readSide(fields, "completion", "assistant");
  return [{ prompt, completion, desirable: Boolean(label) }];
}

/** Both sides of a comparison as single completions; none for a tie. */
export function judgedOf(comparison: LabeledComparison): readonly JudgedCompletion[] {
  const pair = toPair(comparison);
  if (!pair) return [];
  const { prompt, chosen, rejected } = pair;
  return [
    { prompt, completion: chosen, desirable: true },
    { prompt, completion: rejected, desirable: false },
  ];
}

/** A comparison as a chosen and a rejected completion; undefined for a tie. */
export function toPair({ prompt, completionA, completionB, label }: LabeledComparison):
  | {
      readonly prompt: readonly Message[];
      readonly chosen: readonly Message[];
      readonly rejected: readonly Message[];
    }
  | undefined {
  if (label === "Tie") return undefined;
  const [chosen, rejected] =
    label === "A" ? [completionA, completionB] : [completionB, completionA];
  return { prompt, chosen, rejected };
}

function readNested(row: Fields): LabeledComparison {
  const inner = fieldsOf(row["comparison"], "comparison");
  return {
    prompt: readSide(inner, "prompt_conversation", "user"),
    completionA: readSide(inner, "completion_A", "assistant"),
    completionB: readSide(inner, "completion_B", "assistant"),
    label: readLabel(row["label"]),
  };
}

function readFlat(row: Fields, first: string, second: string): LabeledComparison {
  return {
    prompt: withSystem(row, readSide(row, "prompt", "user")),
    completionA: readSide(row, first, "assistant"),
    completionB: readSide(row, second, "assistant"),
    label: readLabel(row["label"]),
  };
}

/** Rows may have the prompt beside the completions, or in front of each of them, or both. */
function readChosen(row: Fields): LabeledComparison {
  const completionA = readSide(row, "chosen", "assistant");
  const completionB = readSide(row, "rejected", "assistant");
  const isWhole = [completionA, completionB].every(([first]) => first?.role !== "assistant");
  if (isWhole) {
    const length = sharedLength(completionA, completionB);
    return {
      prompt: withSystem(row, completionA.slice(0, length)),
      completionA: completionA.slice(length),
      completionB: completionB.slice(length),
      label: "A",
    };
  }
  const prompt = row["prompt"] === undefined ? [] : readSide(row, "prompt", "user");
  return { prompt: withSystem(row, prompt), completionA, completionB, label: "A" };
}

/** Messages that two conversations begin with, up to the last that is not an answer. */
function sharedLength(a: readonly Message[], b: readonly Message[]): number {
  let length = 0;
  while (length < a.length && JSON.stringify(a[length]) === JSON.stringify(b[length])) length++;
  while (length > 0 && a[length - 1]!.role === "assistant") length--;
  return length;
}

function readSide(row: Fields, field: string, role: string): Message[] {
  const value = row[field];
  if (Array.isArray(value)) return toMessages(value, field).map(splitThinking);
  if (typeof value !== "string") {
    throw new DataError(
      `${field}: expected text or a list of messages, got ${value === undefined ? "nothing" : typeof value}`,
    );
  }
  return readTurns(value) ?? [splitThinking({ role, content: value })];
}

const turn = /\n\n(Human|Assistant): /;

/** Conversations written as one text, in the manner of the data set HH-RLHF. */
function readTurns(text: string): Message[] | undefined {
  if (!text.startsWith("\n\nHuman: ")) return undefined;
  const [, ...parts] = text.split(turn);
  return parts.flatMap((part, index) => {
    if (index % 2 === 1) return [];
    const role = part === "Human" ? "user" : "assistant";
    return [splitThinking({ role, content: (parts[index + 1] ?? "").trim() })];
  });
}

function readLabel(value: unknown): PreferenceLabel {
  const label = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (label === "a" || label === "b") return label === "a" ? "A" : "B";
  if (label === "tie") return "Tie";
  throw new DataError(`label: must be "A", "B" or "Tie", not ${JSON.stringify(value)}`);
}

function withSystem({ system }: Fields, messages: readonly Message[]): readonly Message[] {
  if (typeof system !== "string" || system === "") return messages;
  return [{ role: "system", content: system }, ...messages];
}

function fieldsOf(value: unknown, field?: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new DataError(`${field === undefined ? "" : `${field}: `}expected an object`);
}
