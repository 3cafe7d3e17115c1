import type { Headers, HttpRequest } from "./message.js";

const commonLists = new WeakMap<Headers, readonly string[]>();

/** All headers of a request as the flat list of names and values that undici takes. */
export function headerList({ commonHeaders, headers, retryCount }: HttpRequest): string[] {
  let common = commonLists.get(commonHeaders);
  if (!common) {
    common = Object.entries(commonHeaders).flat();
    commonLists.set(commonHeaders, common);
  }
  const list = ["x-stainless-retry-count", String(retryCount)];
  for (let index = 0; index < common.length; index += 2) {
    const name = common[index]!;
    if (headers[name] === undefined) list.push(name, common[index + 1]!);
  }
  for (const name in headers) list.push(name, headers[name]!);
  return list;
}
