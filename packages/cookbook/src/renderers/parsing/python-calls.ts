import { parseJson, pythonText, writeJson, type JsonValue } from "../json-text.js";
import { argumentsOf } from "../check-messages.js";
import type { ToolCall } from "../message.js";
import type { ReadCall } from "./tool-calls.js";

/** A call in Python's notation, `name(key="value")`, with values in Python's notation or JSON. */
export function pythonCall(call: ToolCall, values: "python" | "json"): string {
  const text = (value: JsonValue): string =>
    values === "json" || typeof value === "string" ? writeJson(value) : pythonText(value);
  const given = [...argumentsOf(call)].map(([key, value]) => `${key}=${text(value)}`);
  return `${call.function.name}(${given.join(", ")})`;
}

/** Parses calls in Python's notation, in a list or one per line. */
export function readPythonCalls(body: string): readonly ReadCall[] {
  const text = body.trim();
  const isList = text.startsWith("[") && text.endsWith("]");
  const reader = new Reader(isList ? text.slice(1, -1) : text);
  try {
    const calls: ReadCall[] = [];
    for (reader.skipBetween(); !reader.isDone; reader.skipBetween()) calls.push(reader.call());
    return calls.length > 0 ? calls : [{ rawText: body, error: "Missing function call" }];
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return [{ rawText: body, error: `Malformed function call: ${problem}` }];
  }
}

const words: Readonly<Record<string, JsonValue>> = {
  True: true,
  False: false,
  None: null,
  true: true,
  false: false,
  null: null,
};

/** Parses Python's literals one after the other. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length;
  }

  skipBetween(): void {
    this.#match(/[\s,;]*/y);
  }

  call(): ReadCall {
    const name = this.#match(/[\p{L}_][\p{L}\p{N}_.-]*/uy);
    if (name === undefined) throw new Error(`there is no name at ${this.#rest()}`);
    this.#expect("(");
    const args = new Map<string, JsonValue>();
    while (!this.#take(")")) {
      const key = this.#match(/[\p{L}_][\p{L}\p{N}_]*/uy);
      if (key === undefined) throw new Error(`there is no argument at ${this.#rest()}`);
      this.#expect("=");
      args.set(key, this.#value());
      if (!this.#take(",") && !this.#isNext(")")) throw new Error(`unexpected ${this.#rest()}`);
    }
    return { id: null, function: { name, arguments: writeJson(args) } };
  }

  #value(): JsonValue {
    this.#skip();
    if (this.#take("[")) return this.#list();
    if (this.#take("{")) return this.#map();
    const quoted = this.#match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/sy);
    if (quoted !== undefined) return unquoted(quoted);
    const number = this.#match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number !== undefined) return parseJson(number);
    const word = this.#match(/[A-Za-z]+/y);
    const value = word === undefined ? undefined : words[word];
    if (value === undefined) throw new Error(`unknown value ${word ?? this.#rest()}`);
    return value;
  }

  #list(): JsonValue {
    const values: JsonValue[] = [];
    while (!this.#take("]")) {
      values.push(this.#value());
      if (!this.#take(",") && !this.#isNext("]")) throw new Error(`unexpected ${this.#rest()}`);
    }
    return values;
  }

  #map(): JsonValue {
    const values = new Map<string, JsonValue>();
    while (!this.#take("}")) {
      const key = this.#value();
      this.#expect(":");
      values.set(typeof key === "string" ? key : writeJson(key), this.#value());
      if (!this.#take(",") && !this.#isNext("}")) throw new Error(`unexpected ${this.#rest()}`);
    }
    return values;
  }

  #expect(sign: string): void {
    if (!this.#take(sign)) throw new Error(`${sign} is missing at ${this.#rest()}`);
  }

  #take(sign: string): boolean {
    if (!this.#isNext(sign)) return false;
    this.#at += sign.length;
    return true;
  }

  #isNext(sign: string): boolean {
    this.#skip();
    return this.#text.startsWith(sign, this.#at);
  }

  #skip(): void {
    this.#match(/\s*/y);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }

  #rest(): string {
    const rest = this.#text.slice(this.#at, this.#at + 20);
    return rest === "" ? "its end" : `"${rest}"`;
  }
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

function unquoted(text: string): string {
  return text
    .slice(1, -1)
    .replaceAll(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/gs, (_, escape: string) => {
      const isCode = escape.length > 1;
      return isCode
        ? String.fromCharCode(parseInt(escape.slice(1), 16))
        : (escapes[escape] ?? escape);
    });
}
