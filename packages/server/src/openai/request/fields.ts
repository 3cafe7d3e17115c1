import { invalid } from "../openai-error.js";

/** Plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Whether a value is an object and not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads the fields of an object and rejects values of a wrong type or out of range, by path.
 * `null` counts as absent; unused fields are ignored.
 */
export class Fields {
  readonly json: JsonObject;
  readonly #path: string;

  constructor(json: JsonObject, path = "") {
    this.json = json;
    this.#path = path;
  }

  /** The path of a field. */
  at(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  get(name: string): Json | undefined {
    return (Object.hasOwn(this.json, name) ? this.json[name] : null) ?? undefined;
  }

  boolean(name: string): boolean | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.#wrong(name, value, "true or false");
  }

  string(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.#wrong(name, value, "a string");
  }

  number(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw this.#wrong(name, value, `a number from ${min} to ${max}`);
  }

  integer(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
      return value;
    }
    const bounds =
      max >= Number.MAX_SAFE_INTEGER
        ? `a whole number from ${min}`
        : `a whole number from ${min} to ${max}`;
    throw this.#wrong(name, value, bounds);
  }

  choice<const C extends string>(name: string, choices: readonly C[]): C | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw this.#wrong(name, value, `one of ${choices.join(", ")}`);
  }

  object(name: string): Fields | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (isObject(value)) return new Fields(value, this.at(name));
    throw this.#wrong(name, value, "an object");
  }

  list(name: string): readonly Json[] | undefined {
    const value = this.get(name);
    if (value === undefined || Array.isArray(value)) return value as readonly Json[] | undefined;
    throw this.#wrong(name, value, "a list");
  }

  /** A list of tokens, at most so many. */
  tokens(name: string, most: number): readonly number[] | undefined {
    const list = this.list(name);
    if (list && list.length > most) throw invalid(this.at(name), `has more than ${most} tokens`);
    return list && toTokens(list, this.at(name));
  }

  #wrong(name: string, value: Json, wanted: string): Error {
    return invalid(this.at(name), `must be ${wanted}, got ${brief(value)}`);
  }
}

const lastToken = 2 ** 31 - 1;

/** A list, if it is one of tokens; prompts of them are long, so it is not copied. */
export function toTokens(list: readonly Json[], path: string): readonly number[] {
  for (let index = 0; index < list.length; index++) {
    const token = list[index];
    if (Number.isInteger(token) && (token as number) >= 0 && (token as number) <= lastToken)
      continue;
    throw invalid(`${path}[${index}]`, "must be a token id");
  }
  return list as readonly number[];
}

function brief(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
