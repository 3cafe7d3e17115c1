import type { JsonObject } from "../request/fields.js";
import type { SectionEvent } from "./section-event.js";

const functionStart = "<function=";
const functionEnd = "</function>";
const parameterStart = "<parameter=";
const parameterEnd = "</parameter>";

/** The schema of a tool's arguments; undefined if there is no such tool. */
export type ParametersOf = (name: string) => JsonObject | null | undefined;

/**
 * Reads one call written as tags, `<function=name><parameter=key>value</parameter></function>`. Values are
 * text; the tool's schema gives their types. Each is passed on as JSON when it is complete.
 */
export class CallMarkup {
  readonly #parametersOf: ParametersOf;
  #text = "";
  #rest = "";
  #state: "open" | "done" | "failed" = "open";
  #name: string | null = null;
  #count = 0;

  constructor(parametersOf: ParametersOf) {
    this.#parametersOf = parametersOf;
  }

  get state(): "open" | "done" | "failed" {
    return this.#state;
  }

  /** The text read so far, for text that is not a call. */
  get text(): string {
    return this.#text;
  }

  /** Whether the call has been reported to the caller. */
  get wasTold(): boolean {
    return this.#name !== null;
  }

  /** Consumes the text of the call and returns the rest. */
  push(text: string, emit: (event: SectionEvent) => void): string {
    this.#text += text;
    this.#rest += text;
    while (this.#state === "open" && this.#step(emit)) continue;
    return this.#state === "open" ? "" : this.#rest;
  }

  /** Processes the pending text; false if more is needed. */
  #step(emit: (event: SectionEvent) => void): boolean {
    const rest = this.#rest.trimStart();
    if (this.#name === null) return this.#readName(rest, emit);
    if (rest.startsWith(functionEnd)) {
      emit({ kind: "arguments", text: this.#count === 0 ? "{}" : "}" });
      this.#rest = rest.slice(functionEnd.length);
      this.#state = "done";
      return true;
    }
    if (!rest.startsWith(parameterStart)) {
      const mayBe = [functionEnd, parameterStart].some((mark) => mark.startsWith(rest));
      if (!mayBe) this.#state = "failed";
      return false;
    }
    const nameEnd = rest.indexOf(">");
    const valueEnd = rest.indexOf(parameterEnd);
    if (nameEnd < 0 || valueEnd < 0) return false;
    const key = rest.slice(parameterStart.length, nameEnd);
    // One line break on either side belongs to the tags.
    const value = rest
      .slice(nameEnd + 1, valueEnd)
      .replace(/^\n/, "")
      .replace(/\n$/, "");
    const json = this.#toJson(key, value);
    emit({
      kind: "arguments",
      text: `${this.#count === 0 ? "{" : ", "}${JSON.stringify(key)}: ${json}`,
    });
    this.#count += 1;
    this.#rest = rest.slice(valueEnd + parameterEnd.length);
    return true;
  }

  #readName(rest: string, emit: (event: SectionEvent) => void): boolean {
    const end = rest.indexOf(">");
    if (!rest.startsWith(functionStart)) {
      if (!functionStart.startsWith(rest)) this.#state = "failed";
      return false;
    }
    if (end < 0) return false;
    const name = rest.slice(functionStart.length, end);
    if (this.#parametersOf(name) === undefined) {
      this.#state = "failed";
      return false;
    }
    this.#name = name;
    emit({ kind: "call", name });
    this.#rest = rest.slice(end + 1);
    return true;
  }

  #toJson(key: string, value: string): string {
    const types = typesOf(this.#parametersOf(this.#name ?? "") ?? null, key);
    const others = types.filter((type) => type !== "string");
    if (others.length === 0) return JSON.stringify(value);
    try {
      const parsed = JSON.parse(value) as unknown;
      const isFitting = others.some((type) => isOfType(parsed, type));
      return isFitting ? value.trim() : JSON.stringify(value);
    } catch {
      // Models write booleans and nothing as Python does, too.
      const word = value.trim().toLowerCase();
      const isWord = ["true", "false"].includes(word) && others.includes("boolean");
      if (isWord || (["none", "null"].includes(word) && others.includes("null"))) {
        return word === "none" ? "null" : word;
      }
      return JSON.stringify(value);
    }
  }
}

/** The types that a schema allows for a parameter; unknown ones are text. */
function typesOf(parameters: JsonObject | null, key: string): readonly string[] {
  const properties = parameters?.["properties"] as JsonObject | undefined;
  return typesIn(properties?.[key]);
}

function typesIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return ["string"];
  const { type, anyOf, oneOf } = schema as Record<string, unknown>;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.map(String);
  const branches = anyOf ?? oneOf;
  if (Array.isArray(branches)) return branches.flatMap(typesIn);
  return ["string"];
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }
  return typeof value === type;
}
