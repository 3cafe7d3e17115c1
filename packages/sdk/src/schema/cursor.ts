import { WireError, type WireDirection } from "../errors/wire-error.js";

/** Where in a message an interpreter stands; knows how to complain about that place. */
export class Cursor {
  readonly #direction: WireDirection;
  readonly #typeName: string;
  readonly #steps: (string | number)[] = [];
  /** Numbers here may be infinite or not a number. */
  isMeasured = false;

  /** Whether what can be done without may be missing. */
  readonly isLenient: boolean;

  constructor(direction: WireDirection, typeName: string, isLenient = false) {
    this.isLenient = isLenient;
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
