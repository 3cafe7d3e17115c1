import type { SectionEvent } from "./section-event.js";

/** The state of a text that may be a call. */
export type CallState =
  /** Not complete yet. */
  | "open"
  /** Complete. */
  | "done"
  /** Not a call. */
  | "failed";

/** Longest beginning of a call before its name is known. */
const maxHead = 100_000;

/**
 * Reads one call written as a JSON object, `{"name": …, "arguments": {…}}`, character by character.
 *
 * As soon as the name is known and the arguments are an object, they are passed on exactly as the model
 * writes them. A scanner of strings, escapes and depth finds their end; nothing is ever parsed and
 * serialized again.
 */
export class CallObject {
  readonly #isTool: (name: string) => boolean;
  #text = "";
  #state: CallState = "open";
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The start of the current token: a key, or the value of one. */
  #start = -1;
  #key: string | null = null;
  #expectsKey = false;
  #name: string | null = null;
  #arguments: string | null = null;
  #streams = false;
  /** Arguments that are to be passed on. */
  #passed = "";
  #wasTold = false;

  #isNamed = false;
  #head = "";

  /** `isTool` checks whether a name is that of a tool; others are not calls. */
  constructor(isTool: (name: string) => boolean) {
    this.#isTool = isTool;
  }

  /** A call with its name before it, so that only the arguments follow; `head` is that text. */
  static named(name: string, head: string, isTool: (name: string) => boolean): CallObject {
    const call = new CallObject(isTool);
    call.#isNamed = true;
    call.#head = head;
    call.#name = name;
    call.#key = "arguments";
    call.#depth = 1;
    if (!isTool(name)) call.#state = "failed";
    return call;
  }

  get state(): CallState {
    return this.#state;
  }

  /** The text read so far, for text that is not a call. */
  get text(): string {
    return this.#head + this.#text;
  }

  /** Whether the call has been reported to the caller. */
  get wasTold(): boolean {
    return this.#wasTold;
  }

  /** Consumes the text of the call and returns the rest. */
  push(text: string, emit: (event: SectionEvent) => void): string {
    let taken = 0;
    while (taken < text.length && this.#state === "open") {
      this.#step(text[taken] ?? "", emit);
      taken += 1;
    }
    if (this.#passed !== "") emit({ kind: "arguments", text: this.#passed });
    this.#passed = "";
    if (this.#state === "done") this.#tellAll(emit);
    return text.slice(taken);
  }

  #step(char: string, emit: (event: SectionEvent) => void): void {
    this.#text += char;
    if (this.#inString) {
      if (this.#streams) this.#passed += char;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === "\\") this.#isEscaped = true;
      else if (char === '"') this.#endString();
      return;
    }
    if (this.#text.length > maxHead && !this.#streams) this.#state = "failed";
    if (/\s/.test(char)) {
      if (this.#streams) this.#passed += char;
      return;
    }
    if (this.#depth === 0) {
      if (char !== "{") this.#state = "failed";
      this.#depth = 1;
      this.#expectsKey = true;
      return;
    }
    if (this.#start < 0 && char !== "}" && !(this.#expectsKey && char === ",")) {
      this.#begin(char, emit);
    }
    if (this.#streams) this.#passed += char;
    if (char === '"') this.#inString = true;
    else if (char === "{" || char === "[") this.#depth += 1;
    else if (char === "}" || char === "]") this.#close();
    else if (char === "," && this.#depth === 1) this.#endValue();
  }

  /** A key or a value begins. */
  #begin(char: string, emit: (event: SectionEvent) => void): void {
    if (this.#expectsKey) {
      if (char !== '"') this.#state = "failed";
      this.#start = this.#text.length - 1;
      return;
    }
    if (char === ":") return;
    this.#start = this.#text.length - 1;
    if (this.#isArguments && this.#name !== null && char === "{") {
      emit({ kind: "call", name: this.#name });
      this.#wasTold = true;
      this.#streams = true;
    }
  }

  get #isArguments(): boolean {
    return this.#key === "arguments" || this.#key === "parameters";
  }

  #endString(): void {
    this.#inString = false;
    if (this.#depth !== 1 || !this.#expectsKey) return;
    this.#key = parsed(this.#text.slice(this.#start)) as string | null;
    this.#start = -1;
    this.#expectsKey = false;
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#depth === 1) this.#streams = false;
    if (this.#depth === 1 && this.#isNamed) this.#state = "done";
    if (this.#depth > 0) return;
    this.#endValue(this.#text.length - 1);
    if (this.#state === "open") this.#state = this.#name === null ? "failed" : "done";
  }

  /** Ends a top-level value of the call. */
  #endValue(end = this.#text.length - 1): void {
    if (this.#start >= 0 && !this.#expectsKey) {
      const value = this.#text.slice(this.#start, end).trim();
      if (this.#key === "name") {
        const name = parsed(value);
        if (typeof name === "string" && this.#isTool(name)) this.#name = name;
        else this.#state = "failed";
      } else if (this.#isArguments) this.#arguments = value;
    }
    this.#start = -1;
    this.#key = null;
    this.#expectsKey = true;
  }

  /** Reports a call with arguments that could not be streamed. */
  #tellAll(emit: (event: SectionEvent) => void): void {
    if (this.#wasTold || this.#name === null) return;
    this.#wasTold = true;
    emit({ kind: "call", name: this.#name });
    emit({ kind: "arguments", text: plainArguments(this.#arguments) });
  }
}

/** Arguments that came as a string hold the object inside; none at all are an empty object. */
function plainArguments(text: string | null): string {
  if (text === null) return "{}";
  const value = parsed(text);
  if (value === null) return "{}";
  return typeof value === "string" ? value : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
