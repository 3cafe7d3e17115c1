// Prompts contain JSON in Python's style, and arguments of calls must be returned exactly as the model wrote them. So
// numbers keep their digits (`1.0`, integers of any size) and objects the order of their keys, both of which
// JSON.parse does not keep.

/** A number by its digits. */
export class JsonNumber {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

/** A value read from JSON. */
export type JsonValue =
  | null
  | boolean
  | string
  | JsonNumber
  | readonly JsonValue[]
  | ReadonlyMap<string, JsonValue>;

/** Options of writing JSON. */
export interface WriteJsonOptions {
  /** No spaces after commas and colons. @default false */
  readonly compact?: boolean;
  /** Sort keys of objects by code points, at every depth. @default false */
  readonly sortKeys?: boolean;
}

const token =
  /[ \t\n\r]*(?:(?<sign>[[\]{},:])|(?<word>true|false|null)|(?<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<string>"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"))/uy;

/** Reads JSON without losing digits or order; throws a `SyntaxError` with the position. */
export function parseJson(text: string): JsonValue {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

/** Writes a value as Python's `json.dumps` does, characters beyond ASCII as they are. */
export function writeJson(value: unknown, options: WriteJsonOptions = {}): string {
  const { compact = false, sortKeys = false } = options;
  const [comma, colon] = compact ? [",", ":"] : [", ", ": "];
  const write = (item: unknown): string => {
    if (item instanceof JsonNumber) return item.digits;
    if (typeof item === "number") return writeNumber(item);
    if (typeof item === "bigint") return String(item);
    if (Array.isArray(item)) return `[${item.map(write).join(comma)}]`;
    if (typeof item !== "object" || item === null) return JSON.stringify(item) ?? "null";
    const entries: [string, unknown][] = item instanceof Map ? [...item] : Object.entries(item);
    const ordered = sortKeys ? entries.toSorted(([a], [b]) => compareCodePoints(a, b)) : entries;
    return `{${ordered.map(([key, inner]) => `${JSON.stringify(key)}${colon}${write(inner)}`).join(comma)}}`;
  };
  return write(value);
}

/** A scalar in Python's notation, a string without quotes, anything else as JSON. */
export function pythonText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "True" : "False";
  return value === null || value === undefined ? "None" : writeJson(value);
}

/** A number in Python's notation. */
function writeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} cannot be written as JSON`);
  if (value !== 0 && Math.abs(value) < 1e-4) {
    const [digits, exponent] = value.toExponential().split("e-");
    return `${digits}e-${exponent!.padStart(2, "0")}`;
  }
  return String(value);
}

function compareCodePoints(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const difference = left[index]!.codePointAt(0)! - right[index]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

class Reader {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): JsonValue {
    const groups = this.#next();
    if (groups["word"]) return groups["word"] === "null" ? null : groups["word"] === "true";
    if (groups["number"]) return new JsonNumber(groups["number"]);
    if (groups["string"]) return JSON.parse(groups["string"]) as string;
    if (groups["sign"] === "[") return this.#list();
    if (groups["sign"] === "{") return this.#object();
    return this.#fail("a value");
  }

  end(): void {
    if (this.#text.slice(this.#position).replaceAll(/[ \t\n\r]/g, "") !== "") this.#fail("the end");
  }

  #list(): JsonValue[] {
    const items: JsonValue[] = [];
    if (this.#peek() === "]") return this.#take(items);
    for (;;) {
      items.push(this.value());
      const { sign } = this.#next();
      if (sign === "]") return items;
      if (sign !== ",") this.#fail("a comma");
    }
  }

  #object(): Map<string, JsonValue> {
    const entries = new Map<string, JsonValue>();
    if (this.#peek() === "}") return this.#take(entries);
    for (;;) {
      const { string } = this.#next();
      if (string === undefined) this.#fail("a key");
      if (this.#next()["sign"] !== ":") this.#fail("a colon");
      entries.set(JSON.parse(string) as string, this.value());
      const { sign } = this.#next();
      if (sign === "}") return entries;
      if (sign !== ",") this.#fail("a comma");
    }
  }

  #peek(): string | undefined {
    token.lastIndex = this.#position;
    return token.exec(this.#text)?.groups?.["sign"];
  }

  #take<T>(value: T): T {
    this.#next();
    return value;
  }

  #next(): Record<string, string | undefined> {
    token.lastIndex = this.#position;
    const match = token.exec(this.#text);
    if (!match) return this.#fail("JSON");
    this.#position = token.lastIndex;
    return match.groups ?? {};
  }

  #fail(expected: string): never {
    throw new SyntaxError(`expected ${expected} at character ${this.#position}`);
  }
}
