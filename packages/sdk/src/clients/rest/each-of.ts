import type { PageOptions } from "../rest-options.js";

const pageSize = 100;

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are altogether, when the server says so. */
  readonly totalCount?: number | undefined;
}

/**
 * The items of a list one by one, asked for page by page; whoever stops early asks for no more. A page
 * that is short, or the total where the server tells it, ends the list.
 */
export async function* eachOf<T>(
  { limit = Number.POSITIVE_INFINITY, offset = 0 }: PageOptions,
  getPage: (page: { readonly limit: number; readonly offset: number }) => Promise<Page<T>>,
): AsyncGenerator<T, undefined> {
  for (let count = 0; count < limit;) {
    const size = Math.min(pageSize, limit - count);
    const { items, totalCount } = await getPage({ limit: size, offset: offset + count });
    yield* items;
    count += items.length;
    const isEnd = totalCount === undefined ? items.length < size : offset + count >= totalCount;
    if (isEnd || items.length === 0) return undefined;
  }
  return undefined;
}
