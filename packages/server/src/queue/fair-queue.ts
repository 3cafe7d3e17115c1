/**
 * First in, first out within a group; groups take turns. One client with thousands of requests does
 * not keep the next client waiting behind all of them.
 */
export class FairQueue<E> {
  readonly #groups = new Map<string, E[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(group: string, entry: E): void {
    const entries = this.#groups.get(group);
    if (entries) entries.push(entry);
    else this.#groups.set(group, [entry]);
    this.#size++;
  }

  take(): E | undefined {
    const [first] = this.#groups;
    if (!first) return undefined;
    const [group, entries] = first;
    const entry = entries.shift();
    // Moving the group to the end of the map is what makes the others come first.
    this.#groups.delete(group);
    if (entries.length > 0) this.#groups.set(group, entries);
    this.#size--;
    return entry;
  }

  /** Removes and returns the entries of a group that match. */
  remove(group: string, matches: (entry: E) => boolean): E[] {
    const removed: E[] = [];
    const kept: E[] = [];
    for (const entry of this.#groups.get(group) ?? []) {
      (matches(entry) ? removed : kept).push(entry);
    }
    if (kept.length > 0) this.#groups.set(group, kept);
    else this.#groups.delete(group);
    this.#size -= removed.length;
    return removed;
  }
}
