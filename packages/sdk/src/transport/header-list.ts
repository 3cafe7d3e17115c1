import type { Headers, HttpRequest } from "./message.js";

interface CommonList {
  readonly list: readonly string[];
  /** Where the value of a name stands. */
  readonly positions: ReadonlyMap<string, number>;
}

const commonLists = new WeakMap<Headers, CommonList>();

/** All headers of a request as the flat list of names and values that undici takes. */
export function headerList(request: HttpRequest): string[] {
  const { commonHeaders, headers, retryCount, idempotencyKey } = request;
  const { list: common, positions } = commonListOf(commonHeaders);
  const list = common.slice();
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

/** Put in order once per endpoint; requests come by the thousand. */
function commonListOf(headers: Headers): CommonList {
  let known = commonLists.get(headers);
  if (!known) {
    const list = Object.entries(headers).flat();
    const positions = Object.keys(headers).map((name, index): [string, number] => [
      name,
      2 * index + 1,
    ]);
    known = { list, positions: new Map(positions) };
    commonLists.set(headers, known);
  }
  return known;
}
