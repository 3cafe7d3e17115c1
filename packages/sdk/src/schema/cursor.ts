import type { UnionNode } from "./node.js";
import { WireError, type WireDirection } from "../errors/wire-error.js";

/** How a message is read. */
export interface DecodeOptions {
  /** Whether fields that a server promises, and a client can do without, may be missing. */
  readonly isLenient?: boolean;
  /**
   * What happens to a field that a request type does not have.
   * @default "refuse"
   */
  readonly unknown?: "refuse" | "ignore";
  /** Called with the path of every field of a request that is ignored, without list indices. */
  readonly onIgnored?: (path: string) => void;
}

/** The position of an interpreter in a message, for errors. */
export class Cursor {
  readonly #direction: WireDirection;
  readonly #typeName: string;
  readonly #steps: (string | number)[] = [];
  /** Numbers here may be infinite or not a number. */
  isMeasured = false;

  readonly options: DecodeOptions;

  constructor(direction: WireDirection, typeName: string, options: DecodeOptions = {}) {
    this.options = options;
    this.#direction = direction;
    this.#typeName = typeName;
  }

  get depth(): number {
    return this.#steps.length;
  }

  /** Goes one step deeper; for hot loops, where a closure per field would cost more than the field. */
  enter(step: string | number): void {
    this.#steps.push(step);
  }

  /** Goes back to where `enter` was called. */
  leave(): void {
    this.#steps.pop();
  }

  /** Runs `action` one step deeper; the step is part of every complaint made meanwhile. */
  within<T>(step: string | number, action: () => T): T {
    this.#steps.push(step);
    const result = action();
    this.#steps.pop();
    return result;
  }

  /** Reports that a field in this place is ignored. */
  ignore(field: string): void {
    const names = this.#steps.filter((step) => typeof step === "string");
    this.options.onIgnored?.([...names, field].join("."));
  }

  /** Runs `action` where numbers may be infinite or not a number. */
  measured<T>(action: () => T): T {
    const before = this.isMeasured;
    this.isMeasured = true;
    const result = action();
    this.isMeasured = before;
    return result;
  }

  fail(problem: string, cause?: unknown): never {
    const path = this.#steps
      .map((step, index) =>
        typeof step === "number" ? `[${step}]` : index === 0 ? step : `.${step}`,
      )
      .join("");
    throw new WireError(
      this.#direction,
      this.#typeName,
      path,
      problem,
      cause === undefined ? {} : { cause },
    );
  }

  expected(what: string, actual: unknown): never {
    return this.fail(`expected ${what}, got ${describe(actual)}`);
  }
}

/** A short name for what a value is, for error messages. */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") {
    return value.length > 40 ? `text of ${value.length} characters` : JSON.stringify(value);
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return `${value}`;
  if (typeof value === "object") {
    const name = value.constructor?.name;
    return name && name !== "Object" ? `a ${name}` : "an object";
  }
  return `a ${typeof value}`;
}

/** Complains about a value that is none of the options, naming the field that distinguishes them. */
export function failUnion(
  node: UnionNode,
  value: unknown,
  cursor: Cursor,
  tag: string | undefined,
): never {
  const wanted = `one of ${Object.keys(node.options).join(", ")}`;
  if (tag === undefined || typeof value !== "object" || value === null || Array.isArray(value)) {
    return cursor.expected(tag === undefined ? wanted : `an object (${node.name})`, value);
  }
  const given = (value as Readonly<Record<string, unknown>>)[tag];
  return cursor.within(tag, () => cursor.expected(wanted, given));
}
