import { readRequestPlace, type RequestPlace, type WireError } from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";

/** The path to a field is as long as its body is deep. */
const maxMessageLength = 1000;

/** A body of known form that does not say what its endpoint needs. */
export class UndecodableBody extends ApiError {
  readonly #bytes: Uint8Array;
  readonly #form: "json" | "proto";

  constructor(cause: WireError, bytes: Uint8Array, form: "json" | "proto") {
    super(400, shorten(cause.message), { cause });
    this.#bytes = bytes;
    this.#form = form;
  }

  /** The place in the sequence of a model that the request would have had, if it can be read. */
  get place(): RequestPlace | undefined {
    return readRequestPlace(this.#bytes, this.#form);
  }
}

function shorten(message: string): string {
  if (message.length <= maxMessageLength) return message;
  const half = maxMessageLength / 2;
  return `${message.slice(0, half)} ... ${message.slice(-half)}`;
}
