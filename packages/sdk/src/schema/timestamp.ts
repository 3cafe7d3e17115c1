/**
 * A `Date` that keeps the text it was read from, so that microseconds and the offset survive a round
 * trip. Changing the date (`setHours` and the like) makes the text stale; it is then written anew.
 */
export class Timestamp extends Date {
  readonly #text: string | undefined;
  readonly #readAsMs: number;

  constructor(value: Date | number | string) {
    super(typeof value === "string" ? parseTimestamp(value) : value.valueOf());
    this.#readAsMs = this.getTime();
    this.#text =
      value instanceof Timestamp ? value.text : typeof value === "string" ? value : undefined;
  }

  /** ISO 8601 text: the original where there is one, else UTC with microseconds only if not zero. */
  get text(): string {
    if (this.#text !== undefined && this.#readAsMs === this.getTime()) return this.#text;
    return formatUtc(this);
  }

  override toJSON(): string {
    return this.text;
  }
}

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:\s*(Z|z|[+-]\d\d(?::?\d\d)?))?)?$/;

/** Milliseconds since the epoch, or NaN; text without an offset is UTC. */
export function parseTimestamp(text: string): number {
  const match = pattern.exec(text);
  if (!match) return Number.NaN;
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone = "Z"] =
    match;
  const milliseconds = Number(`0.${fraction}0`) * 1000;
  const wall = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
    Math.floor(milliseconds),
  );
  const valid =
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second) < 60 &&
    new Date(wall).toISOString().startsWith(`${year}-${month}-${day}`);
  return valid ? wall - offsetMs(zone) : Number.NaN;
}

function offsetMs(zone: string): number {
  if (zone === "Z" || zone === "z") return 0;
  const sign = zone.startsWith("-") ? -1 : 1;
  const digits = zone.slice(1).replace(":", "");
  return sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2) || "0")) * 60_000;
}

function formatUtc(date: Date): string {
  const text = date.toISOString();
  return text.endsWith(".000Z") ? `${text.slice(0, -5)}Z` : `${text.slice(0, -1)}000Z`;
}
