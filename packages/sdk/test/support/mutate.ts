/** A small deterministic random source, so that a failing fuzz case can be run again. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

const strangeValues: readonly unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e308,
  2 ** 53,
  "",
  "NaN",
  "12345678901234567890",
  [],
  [[]],
  [null, 1, "x"],
  {},
  { type: "try_again" },
  { error: 1 },
  { __proto__: null, constructor: 1 },
];

/** Damages parsed JSON somewhere: other values, missing, doubled, renamed or unknown fields. */
export function mutateJson(value: unknown, random: Random): unknown {
  if (random.below(12) === 0) return random.pick(strangeValues);
  if (Array.isArray(value)) {
    const copy: unknown[] = [...value];
    if (copy.length === 0) return random.below(2) ? copy : [random.pick(strangeValues)];
    const index = random.below(copy.length);
    copy[index] = mutateJson(copy[index], random);
    return copy;
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return { surprise: random.pick(strangeValues) };
    const [key, item] = random.pick(entries);
    const copy: Record<string, unknown> = Object.fromEntries(entries);
    if (random.below(8) === 0) delete copy[key];
    else if (random.below(12) === 0) copy[`${key}_`] = item;
    else copy[key] = mutateJson(item, random);
    return copy;
  }
  return random.pick(strangeValues);
}

/** Damages text: characters replaced, removed, doubled, or cut off. */
export function mutateText(text: string, random: Random): string {
  const position = random.below(text.length + 1);
  const character = random.pick(["{", "}", "[", '"', "\\", "9", "-", "e", ",", "\u0000", "\ud800"]);
  switch (random.below(4)) {
    case 0:
      return text.slice(0, position);
    case 1:
      return text.slice(0, position) + character + text.slice(position);
    case 2:
      return text.slice(0, position) + character.repeat(300) + text.slice(position + 1);
    default:
      return text.slice(0, position) + text.slice(position + 1 + random.below(5));
  }
}

/** Damages bytes: bits flipped, values replaced, pieces removed, repeated or cut off. */
export function mutateBytes(bytes: Uint8Array, random: Random): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const position = random.below(copy.length);
  switch (random.below(5)) {
    case 0:
      return copy.subarray(0, position);
    case 1:
      copy[position] = random.below(256);
      return copy;
    case 2:
      copy[position] = copy[position]! ^ (1 << random.below(8));
      return copy;
    case 3:
      copy.fill(0xff, position, position + random.below(12));
      return copy;
    default:
      return Uint8Array.from([...copy.subarray(0, position), ...copy.subarray(random.below(8))]);
  }
}
