import type { Headers, HttpRequest } from "./message.js";

interface KnownList {
  readonly common: readonly string[];
  /** Where the value of a name stands. */
  readonly positions: ReadonlyMap<string, number>;
  /** Filled in anew for every request. */
  readonly list: string[];
}

const knownLists = new WeakMap<Headers, KnownList>();

/**
 * All headers of a request as the flat list of names and values that undici takes. Requests come by the thousand,
 * so that all of an endpoint share one list: it is good until the next one asks, and undici reads it at once.
 */
export function headerList(request: HttpRequest): readonly string[] {
  const { commonHeaders, headers, retryCount, idempotencyKey } = request;
  const { common, positions, list } = knownListOf(commonHeaders);
  list.length = common.length;
  for (let index = 1; index < common.length; index += 2) list[index] = common[index]!;
  const put = (name: string, value: string): void => {
    const position = positions.get(name);
    if (position === undefined) list.push(name, value);
    else list[position] = value;
  };
  put("x-stainless-retry-count", String(retryCount));
  if (idempotencyKey !== null) put("x-idempotency-key", idempotencyKey);
  for (const name in headers) put(name, headers[name]!);
  return list;
}

/** Put in order once per endpoint. */
function knownListOf(headers: Headers): KnownList {
  let known = knownLists.get(headers);
  if (!known) {
    const common = Object.entries(headers).flat();
    const positions = Object.keys(headers).map((name, index): [string, number] => [
      name,
      2 * index + 1,
    ]);
    known = { common, positions: new Map(positions), list: common.slice() };
    knownLists.set(headers, known);
  }
  return known;
}
