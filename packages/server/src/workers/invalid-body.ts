import type { RequestPlace } from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";

/** The path to a field is as long as its body is deep. */
const maxMessageLength = 1000;

/** A body of known form that does not say what its endpoint needs. */
export class InvalidBody extends ApiError {
  /** The place in the sequence of a model that the request would have had, if it can be read. */
  readonly place: RequestPlace | undefined;

  constructor(message: string, place: RequestPlace | undefined) {
    super(400, shorten(message));
    this.place = place;
  }
}

function shorten(message: string): string {
  if (message.length <= maxMessageLength) return message;
  const half = maxMessageLength / 2;
  return `${message.slice(0, half)} ... ${message.slice(-half)}`;
}
