/**
 * First in, first out within a group; the groups of an owner take turns, and so do owners. One client with
 * thousands of requests does not keep the next client waiting behind all of them, and one owner with many
 * clients not the next owner.
 */
export class FairQueue<E> {
  readonly #owners = new Rotation<Rotation<E[]>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Groups that wait. */
  get groupCount(): number {
    return [...this.#owners.values()].reduce((sum, groups) => sum + groups.size, 0);
  }

  add(owner: string, group: string, entry: E): void {
    this.#owners
      .at(owner, () => new Rotation())
      .at(group, () => [])
      .push(entry);
    this.#size++;
  }

  /** The next entry of those owners who may go. */
  take(mayGo: (owner: string) => boolean = () => true): E | undefined {
    const owner = this.#owners.first(mayGo);
    const groups = this.#owners.get(owner ?? "");
    const group = groups?.first();
    const entries = groups?.get(group ?? "");
    if (owner === undefined || group === undefined || !groups || !entries) return undefined;
    const entry = entries.shift();
    groups.turn(group, entries.length > 0);
    this.#owners.turn(owner, groups.size > 0);
    this.#size--;
    return entry;
  }

  /** Removes and returns the entries of a group. */
  remove(owner: string, group: string): E[] {
    const groups = this.#owners.get(owner);
    const removed = groups?.get(group) ?? [];
    groups?.delete(group);
    if (groups?.size === 0) this.#owners.delete(owner);
    this.#size -= removed.length;
    return removed;
  }
}

/** Things by name that take turns; a map whose first entry is the one whose turn it is. */
class Rotation<T> extends Map<string, T> {
  at(name: string, make: () => T): T {
    const known = this.get(name) ?? make();
    this.set(name, known);
    return known;
  }

  first(mayGo: (name: string) => boolean = () => true): string | undefined {
    for (const name of this.keys()) if (mayGo(name)) return name;
    return undefined;
  }

  /** Puts one last that had its turn, or takes it out. */
  turn(name: string, stays: boolean): void {
    const one = this.get(name);
    this.delete(name);
    if (one !== undefined && stays) this.set(name, one);
  }
}
