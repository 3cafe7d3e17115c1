/**
 * What is scarce in the server: the engine for training, the disk for saved states, sequences that are sampled,
 * streams of samples, polls that wait, the event loop, workers beside it, and bytes of bodies.
 */
export type Resource =
  | "engine"
  | "disk"
  | "samples"
  | "streams"
  | "polls"
  | "loop"
  | "workers"
  | "bodies";

/** The scheduler of a server. */
export type ServerScheduler = Scheduler<Resource>;

/** How much there is of something scarce. */
export interface ResourceOptions {
  /** How much can be taken at the same time. */
  readonly capacity: number;
  /** Most turns that wait; one owner may have half of what others leave. @default no bound */
  readonly maxWaiting?: number;
  /** Most turns that one owner has at the same time. @default no bound */
  readonly maxPerOwner?: number;
  /** An owner with this part of what others leave waits, so that there is room for one more. @default 1 */
  readonly maxShare?: number;
}

/** A request for a turn at a resource. */
export interface TurnRequest<R extends string = string> {
  readonly resource: R;
  readonly owner: string;
  /** What of the owner asks, such as a model or a session; groups share what their owner gets. */
  readonly group: string;
  /** How much of the capacity it takes. The last turn given may take more than is left. @default 1 */
  readonly size?: number;
  /** What it costs, as far as that is known before. @default 0 */
  readonly cost?: number;
  /** True while a turn of this group is cheaper than one of others, which then wait a little longer. */
  readonly isPreferred?: () => boolean;
}

/** A turn that was given; it must be ended. */
export interface Turn {
  /** Gives the turn back; `cost` replaces the cost of the request. */
  end(cost?: number): void;
}

interface Waiter {
  readonly request: TurnRequest;
  readonly give: (turn: Turn) => void;
}

/** What one owner has and waits for at a resource, by group in order of arrival. */
interface Line {
  readonly round: DeficitRound;
  readonly groups: Map<string, Set<Waiter>>;
  waiting: number;
  turns: number;
  taken: number;
}

interface ResourceState extends ResourceOptions {
  readonly owners: DeficitRound;
  readonly lines: Map<string, Line>;
  /** What the turns of each owner have cost. */
  readonly spent: Map<string, number>;
  taken: number;
  waiting: number;
}

/**
 * Turns at everything scarce in the server.
 *
 * - Owners share a resource by the cost of their turns, and so do the groups of one owner; within a group the
 *   first to come is served first.
 * - A turn is not taken away. A request waits for turns under way and for owners who have used less, never for
 *   everything that others have in line.
 */
export class Scheduler<R extends string = string> {
  readonly #resources: ReadonlyMap<string, ResourceState>;

  constructor(resources: Readonly<Record<R, ResourceOptions>>) {
    this.#resources = new Map(
      Object.entries<ResourceOptions>(resources).map(([name, options]) => [
        name,
        {
          ...options,
          owners: new DeficitRound(),
          lines: new Map(),
          spent: new Map(),
          taken: 0,
          waiting: 0,
        },
      ]),
    );
  }

  /** Waits for a turn. */
  turn(request: TurnRequest<R>, signal: AbortSignal): Promise<Turn> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const resource = this.#state(request.resource);
      const waiter: Waiter = {
        request,
        give: (turn) => {
          signal.removeEventListener("abort", giveUp);
          resolve(turn);
        },
      };
      const giveUp = (): void => {
        removeWaiter(resource, waiter);
        dropIdle(resource, request.owner);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      const line = lineOf(resource, request.owner);
      const group = line.groups.get(request.group) ?? new Set();
      line.groups.set(request.group, group.add(waiter));
      line.waiting++;
      resource.waiting++;
      giveTurns(resource);
    });
  }

  /** A turn at once, if all but the last of it is within this share of what other owners leave. */
  tryTurn({ resource: name, owner, size = 1 }: Asked<R>, share: number): Turn | undefined {
    const resource = this.#state(name);
    const own = resource.lines.get(owner)?.taken ?? 0;
    const shared = (resource.capacity - (resource.taken - own)) * share;
    if (own + size - 1 >= shared) return undefined;
    const line = lineOf(resource, owner);
    line.turns++;
    line.taken += size;
    resource.taken += size;
    return { end: once(() => giveBack(resource, owner, size)) };
  }

  /** False when an owner has too many turns waiting to wait for one more. */
  hasRoom({ resource: name, owner }: Asked<R>): boolean {
    const resource = this.#state(name);
    const { waiting, maxWaiting = Infinity, lines } = resource;
    const own = lines.get(owner)?.waiting ?? 0;
    const isFree = resource.taken < resource.capacity && isBelowShare(resource, lines.get(owner));
    return isFree || own < Math.ceil((maxWaiting - (waiting - own)) / 2);
  }

  /** How many owners and how many groups of this owner wait, if this group does. */
  contention(request: Asked<R> & Pick<TurnRequest, "group">): Contention | undefined {
    const { lines } = this.#state(request.resource);
    const groups = lines.get(request.owner)?.groups;
    if (!groups?.has(request.group)) return undefined;
    const owners = [...lines.values()].filter(({ waiting }) => waiting > 0).length;
    return { owners, groups: groups.size };
  }

  /** How much of a resource is taken, and how many turns and groups wait. */
  load(name: R): { readonly taken: number; readonly waiting: number; readonly groups: number } {
    const { taken, waiting, lines } = this.#state(name);
    const groups = [...lines.values()].reduce((sum, line) => sum + line.groups.size, 0);
    return { taken, waiting, groups };
  }

  /** What each owner has spent, has and waits for, by resource. */
  accounts(): Account[] {
    return [...this.#resources].flatMap(([resource, { spent, lines }]) =>
      [...new Set([...spent.keys(), ...lines.keys()])].map((owner) => ({
        resource,
        owner,
        spent: spent.get(owner) ?? 0,
        turns: lines.get(owner)?.turns ?? 0,
        waiting: lines.get(owner)?.waiting ?? 0,
      })),
    );
  }

  /** How many turns an owner has at a resource. */
  turnsOf({ resource, owner }: Asked<R>): number {
    return this.#state(resource).lines.get(owner)?.turns ?? 0;
  }

  #state(name: R): ResourceState {
    return this.#resources.get(name)!;
  }
}

type Asked<R extends string> = Pick<TurnRequest<R>, "resource" | "owner" | "size">;

/** What an owner has to do with a resource. */
export interface Account {
  readonly resource: string;
  readonly owner: string;
  /** What its turns have cost: tokens for the engine, samples and streams, bytes for the disk. */
  readonly spent: number;
  readonly turns: number;
  readonly waiting: number;
}

/** Who else waits for a resource. */
export interface Contention {
  readonly owners: number;
  readonly groups: number;
}

function giveTurns(resource: ResourceState): void {
  const { owners, lines, capacity, maxPerOwner = Infinity } = resource;
  while (resource.waiting > 0 && resource.taken < capacity) {
    const ready = new Set<string>();
    for (const [owner, line] of lines) {
      const mayTake = line.turns < maxPerOwner && isBelowShare(resource, line);
      if (line.waiting > 0 && mayTake) ready.add(owner);
    }
    const owner = owners.next(ready);
    if (owner === undefined) return;
    const line = lines.get(owner)!;
    const isPreferred = (group: string): boolean => {
      const [first] = line.groups.get(group)!;
      return first?.request.isPreferred?.() ?? true;
    };
    const group = line.round.next(new Set(line.groups.keys()), isPreferred)!;
    const [waiter] = line.groups.get(group)!;
    removeWaiter(resource, waiter!);
    waiter!.give(begin(resource, line, waiter!.request));
  }
}

function isBelowShare({ capacity, taken, maxShare = 1 }: ResourceState, line?: Line): boolean {
  const own = line?.taken ?? 0;
  return own < (capacity - (taken - own)) * maxShare;
}

/** Charges what is known of the cost, so that the next turn sees it; its end settles the rest. */
function begin(resource: ResourceState, line: Line, request: TurnRequest): Turn {
  const { owner, group, size = 1, cost = 0 } = request;
  resource.taken += size;
  line.taken += size;
  line.turns++;
  resource.owners.charge(owner, cost);
  line.round.charge(group, cost);
  const end = once((actual = cost) => {
    resource.owners.settle(owner, cost, actual);
    line.round.settle(group, cost, actual);
    resource.spent.set(owner, (resource.spent.get(owner) ?? 0) + actual);
    giveBack(resource, owner, size);
  });
  return { end };
}

function giveBack(resource: ResourceState, owner: string, size: number): void {
  const line = resource.lines.get(owner)!;
  resource.taken -= size;
  line.taken -= size;
  line.turns--;
  dropIdle(resource, owner);
  giveTurns(resource);
}

function lineOf({ lines }: ResourceState, owner: string): Line {
  const line = lines.get(owner) ?? {
    round: new DeficitRound(),
    groups: new Map<string, Set<Waiter>>(),
    waiting: 0,
    turns: 0,
    taken: 0,
  };
  lines.set(owner, line);
  return line;
}

function removeWaiter(resource: ResourceState, waiter: Waiter): void {
  const { owner, group } = waiter.request;
  const line = resource.lines.get(owner)!;
  const waiters = line.groups.get(group)!;
  waiters.delete(waiter);
  if (waiters.size === 0) line.groups.delete(group);
  line.waiting--;
  resource.waiting--;
}

/** An owner who has nothing and waits for nothing keeps no more than the debt to other owners. */
function dropIdle({ lines }: ResourceState, owner: string): void {
  const line = lines.get(owner);
  if (line?.waiting === 0 && line.turns === 0) lines.delete(owner);
}

function once(action: (cost?: number) => void): (cost?: number) => void {
  let isDone = false;
  return (cost) => {
    if (isDone) return;
    isDone = true;
    action(cost);
  };
}

/** What every turn costs at least: small requests are not free. */
const leastCost = 64;

/** How much more than others a preferred key may owe. */
const maxAhead = 4096;

/**
 * Deficit round robin: a key owes the cost of its turn and comes again once the debt is paid off. All pay off at the
 * same pace, so many small turns weigh as much as one large turn. A debt outlives the waiting: asking for one
 * turn at a time does not avoid it.
 */
class DeficitRound {
  /** What each key still owes, in the order of their last turns. */
  readonly #debts = new Map<string, number>();

  /** The key of the next turn. Time in which no key could go is skipped; preferred keys may owe a little. */
  next(
    ready: ReadonlySet<string>,
    isPreferred: (key: string) => boolean = () => false,
  ): string | undefined {
    let least = Infinity;
    for (const key of ready) {
      const debt = this.#debts.get(key);
      if (debt === undefined) this.#debts.set(key, 0);
      least = Math.min(least, debt ?? 0);
    }
    let best: { key: string; debt: number; isPreferred: boolean } | undefined;
    for (const [key, before] of this.#debts) {
      const debt = Math.max(0, before - least);
      if (debt > 0 || ready.has(key)) this.#debts.set(key, debt);
      else this.#debts.delete(key);
      if (!ready.has(key)) continue;
      const one = { key, debt, isPreferred: isPreferred(key) };
      if (debt > 0 && !(one.isPreferred && debt < maxAhead)) continue;
      if (!best || isBefore(one, best)) best = one;
    }
    return best?.key;
  }

  /** Puts the cost of a turn on the account of a key, which is now the last. */
  charge(key: string, cost: number): void {
    const debt = (this.#debts.get(key) ?? 0) + Math.max(leastCost, cost);
    this.#debts.delete(key);
    this.#debts.set(key, debt);
  }

  /** Replaces the cost that was charged by the actual one. */
  settle(key: string, charged: number, actual: number): void {
    const more = Math.max(leastCost, actual) - Math.max(leastCost, charged);
    if (more === 0) return;
    this.#debts.set(key, Math.max(0, (this.#debts.get(key) ?? 0) + more));
  }
}

interface Candidate {
  readonly debt: number;
  readonly isPreferred: boolean;
}

function isBefore(one: Candidate, other: Candidate): boolean {
  return one.isPreferred === other.isPreferred ? one.debt < other.debt : one.isPreferred;
}
