import { platform } from "../runtime/platform.js";
import type { Headers, HttpResponse } from "./message.js";

/*
 * Most operations on small models take a few milliseconds, and asking for the result would cost as much
 * again. A request may therefore tell for how long its sender likes to wait; a server that knows the
 * header answers with the result when it is there by then, in the form of a poll's answer, and names the
 * request in a header. All others take no notice.
 */

/** Shorter than what a connection may be quiet for, and than what anybody would notice in a line. */
const holdMs = 50;

/** Larger requests take longer than anybody waits. */
const maxHeldBytes = 64 * 1024;

const holding: Headers = { "x-tinker-hold-ms": String(holdMs) };
const nothing: Headers = {};

/** An accepted request. */
export interface Acceptance {
  readonly requestId: string;
  /** The answer that a poll would have got, where it came along. */
  readonly outcome?: HttpResponse;
}

/**
 * The headers of a request that nobody waits behind. Browsers ask the server first whether a header may
 * be sent, and one that does not know it would say no.
 */
export function holdHeaders(request: { isAlone: boolean; sizeBytes?: number }): Headers {
  const { isAlone, sizeBytes = 0 } = request;
  const isQuick = isAlone && sizeBytes <= maxHeldBytes && platform.runtime !== "browser";
  return isQuick ? holding : nothing;
}
