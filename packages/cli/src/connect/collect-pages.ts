/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are altogether, when the server says so. */
  readonly totalCount: number | undefined;
}

/** As much of a list as was asked for. */
export interface Collected<T> {
  readonly items: readonly T[];
  /** How many more there are. */
  readonly hidden: number;
}

/** Reads pages until the limit, the end of the list or a short page; a limit of 0 means all. */
export async function collectPages<T>(
  getPage: (limit: number, offset: number) => Promise<Page<T>>,
  bounds: { readonly limit: number; readonly offset: number; readonly pageSize: number },
): Promise<Collected<T>> {
  const { pageSize } = bounds;
  const wanted = bounds.limit === 0 ? Number.POSITIVE_INFINITY : bounds.limit;
  const items: T[] = [];
  let totalCount: number | undefined;
  while (items.length < wanted) {
    const size = Math.min(pageSize, wanted - items.length);
    const page = await getPage(size, bounds.offset + items.length);
    ({ totalCount } = page);
    items.push(...page.items);
    const isEnd = totalCount !== undefined && bounds.offset + items.length >= totalCount;
    if (page.items.length < size || isEnd) break;
  }
  const hidden = totalCount === undefined ? 0 : totalCount - bounds.offset - items.length;
  return { items, hidden: Math.max(0, hidden) };
}
