import type { KvRows, KvShape } from "./kv-rows.js";

/** Prompts are processed and remembered in blocks of this many tokens, aligned to their start. */
export const promptBlock = 64;

/** The weights that blocks are computed with, and the scope that may find them: a prompt that is read quickly was sent before. */
export interface PrefixSource {
  readonly adapter: string;
  readonly scope: string;
}

interface CacheNode {
  readonly children: Map<string, CacheNode>;
  readonly parent: CacheNode | undefined;
  readonly key: string;
  /** Keys and values of this block alone, and here and there the states at its end. */
  block: KvRows | undefined;
  lastUse: number;
}

/**
 * Remembers keys and values of prompt blocks, by adapter, scope and all tokens up to the block's end.
 *
 * Layers with a state continue from a block only if the state at its end was kept too.
 *
 * Only whole blocks computed by a prompt pass are kept. Such a block has the same bits no matter which request
 * computed it, so that a hit saves time and changes nothing. When the memory is used up, the least recently
 * used block is evicted; blocks on a path are touched from its end to its start, so that no
 * block is evicted before those that build on it.
 */
export class PrefixCache {
  readonly #maxBytes: number;
  readonly #needsStates: boolean;
  readonly #usualLength: number;
  readonly #roots = new Map<string, CacheNode>();
  #bytes = 0;
  #clock = 0;

  /** Prompts of more than `usualLength` tokens have other keys than shorter ones. */
  constructor(shape: KvShape, maxBytes: number, usualLength = Infinity) {
    this.#usualLength = usualLength;
    this.#maxBytes = maxBytes;
    this.#needsStates = (shape.states ?? []).length > 0;
  }

  /** Blocks known for the start of a prompt, at most `maxBlocks`. */
  find(source: PrefixSource, tokens: Int32Array, maxBlocks: number): readonly KvRows[] {
    const found: KvRows[] = [];
    let node = this.#roots.get(this.#rootKey(source, tokens));
    for (let index = 0; index < maxBlocks && node !== undefined; index++) {
      const child = node.children.get(blockKey(tokens, index));
      if (child?.block === undefined) break;
      found.push(child.block);
      node = child;
    }
    this.#touch(node);
    if (!this.#needsStates) return found;
    return found.slice(0, 1 + found.findLastIndex(({ hasStates }) => hasStates));
  }

  /** Remembers block `index` of a prompt: a row of exactly its tokens. */
  add(source: PrefixSource, tokens: Int32Array, index: number, block: KvRows): void {
    if (block.bytes > this.#maxBytes) return;
    const rootKey = this.#rootKey(source, tokens);
    let node = this.#roots.get(rootKey) ?? this.#newRoot(rootKey);
    for (let earlier = 0; earlier < index; earlier++) {
      const child = node.children.get(blockKey(tokens, earlier));
      if (child === undefined) return;
      node = child;
    }
    const key = blockKey(tokens, index);
    const known = node.children.get(key);
    if (known?.block !== undefined) {
      if (!block.hasStates || known.block.hasStates) return;
      this.#bytes += block.bytes - known.block.bytes;
      known.block = block;
      this.#touch(known);
    } else {
      const child: CacheNode = { children: new Map(), parent: node, key, block, lastUse: 0 };
      node.children.set(key, child);
      this.#bytes += block.bytes;
      this.#touch(child);
    }
    while (this.#bytes > this.#maxBytes) this.#forgetOldest();
  }

  /** Removes all blocks of an adapter. */
  drop(adapter: string): void {
    for (const [key, root] of this.#roots) {
      if ((JSON.parse(key) as unknown[])[0] !== adapter) continue;
      this.#roots.delete(key);
      this.#bytes -= bytesOf(root);
    }
  }

  #rootKey({ adapter, scope }: PrefixSource, tokens: Int32Array): string {
    return JSON.stringify([adapter, scope, tokens.length > this.#usualLength]);
  }

  #newRoot(key: string): CacheNode {
    const root: CacheNode = {
      children: new Map(),
      parent: undefined,
      key,
      block: undefined,
      lastUse: 0,
    };
    this.#roots.set(key, root);
    return root;
  }

  #touch(last: CacheNode | undefined): void {
    for (let node = last; node !== undefined; node = node.parent) node.lastUse = ++this.#clock;
  }

  #forgetOldest(): void {
    let oldest: CacheNode | undefined;
    const visit = (node: CacheNode): void => {
      if (node.block !== undefined && node.lastUse < (oldest?.lastUse ?? Infinity)) oldest = node;
      for (const child of node.children.values()) visit(child);
    };
    for (const root of this.#roots.values()) visit(root);
    if (oldest === undefined) return;
    const { parent } = oldest;
    parent?.children.delete(oldest.key);
    this.#bytes -= bytesOf(oldest);
    if (parent?.children.size === 0 && parent.parent === undefined) this.#roots.delete(parent.key);
  }
}

function bytesOf(node: CacheNode): number {
  let bytes = node.block?.bytes ?? 0;
  for (const child of node.children.values()) bytes += bytesOf(child);
  return bytes;
}

function blockKey(tokens: Int32Array, index: number): string {
  return tokens.subarray(index * promptBlock, (index + 1) * promptBlock).join();
}
