import { isObject, type JsonObject } from "./json.js";

/** Makes an error of the caller's class for an invalid value. */
export type MakeError = (message: string) => Error;

/** Typed access to the fields of a JSON object; each error names file, field and value. */
export class JsonFields {
  readonly where: string;
  readonly json: JsonObject;
  readonly #makeError: MakeError;

  constructor(object: unknown, where: string, makeError: MakeError) {
    if (!isObject(object)) throw makeError(`${where} is not a JSON object.`);
    this.json = object;
    this.where = where;
    this.#makeError = makeError;
  }

  /** The raw value; undefined when the field is absent or null, which mean the same in these files. */
  get(name: string): unknown {
    return this.json[name] ?? undefined;
  }

  /** An integer of at least `minimum`, or `fallback` when the field is absent. */
  integer(name: string, minimum: number, fallback?: number): number {
    const value = this.get(name) ?? fallback;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= minimum) return value;
    throw this.refuse(name, `must be a whole number of at least ${minimum}`);
  }

  /** A finite number greater than zero, or `fallback` when the field is absent. */
  positive(name: string, fallback?: number): number {
    const value = this.get(name) ?? fallback;
    if (typeof value === "number" && Number.isFinite(value) && value > 0) return value;
    throw this.refuse(name, "must be a number greater than zero");
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.get(name) ?? fallback;
    if (typeof value === "boolean") return value;
    throw this.refuse(name, "must be true or false");
  }

  string(name: string, fallback?: string): string {
    const value = this.get(name) ?? fallback;
    if (typeof value === "string") return value;
    throw this.refuse(name, "must be a text");
  }

  /** The fields of a nested object; undefined when absent. */
  nested(name: string): JsonFields | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    return new JsonFields(value, `"${name}" of ${this.where}`, this.#makeError);
  }

  /** The error for a field with an invalid value. */
  refuse(name: string, problem: string): Error {
    const value = this.get(name);
    const shown = value === undefined ? "is missing" : `is ${JSON.stringify(value)}`;
    return this.#makeError(`"${name}" of ${this.where} ${shown}, but ${problem}.`);
  }
}
