import type { Json, JsonObject } from "../request/fields.js";

/** Items of all owners that are cached; the least recently used are evicted first. */
const maxItems = 10_000;

/** Characters that they may have together. */
const maxChars = 64 << 20;

/**
 * Caches recent items, because some clients send references to them instead of the items. Nothing
 * survives a restart; clients that need more send the items themselves.
 */
export class RecentItems {
  readonly #items = new Map<string, { readonly item: JsonObject; readonly length: number }>();
  #chars = 0;

  add(owner: string, item: JsonObject): void {
    const key = keyOf(owner, item["id"] ?? null);
    const { length } = JSON.stringify(item);
    this.#items.set(key, { item, length });
    this.#chars += length;
    for (const [oldest, { length: its }] of this.#items) {
      if (this.#items.size <= maxItems && this.#chars <= maxChars) break;
      this.#items.delete(oldest);
      this.#chars -= its;
    }
  }

  get(owner: string, id: Json): JsonObject | undefined {
    return this.#items.get(keyOf(owner, id))?.item;
  }
}

function keyOf(owner: string, id: Json): string {
  return JSON.stringify([owner, id]);
}
