import type { GrammarBuilder, RuleId } from "./grammar-builder.js";

/** Bounds of a number; a bound that is exclusive does not belong to the range. */
export interface NumberRange {
  readonly min: number | null;
  readonly max: number | null;
  readonly isMinExclusive: boolean;
  readonly isMaxExclusive: boolean;
}

/** Whole numbers without a bound end here; the others have as many digits as their bound. */
const widest = 10n ** 15n - 1n;

/** Whole numbers from one to another, in decimal; undefined when there is none. */
export function integersBetween(
  builder: GrammarBuilder,
  low: bigint,
  high: bigint,
): RuleId | undefined {
  if (low > high) return undefined;
  const parts: RuleId[] = [];
  if (low < 0n) {
    const end = high < 0n ? -high : 1n;
    parts.push(builder.sequence(builder.text("-"), positive(builder, end, -low)));
  }
  if (high >= 0n) {
    if (low <= 0n) parts.push(builder.text("0"));
    if (high >= 1n) parts.push(positive(builder, low > 1n ? low : 1n, high));
  }
  return builder.choice(...parts);
}

/** The least and the greatest whole number of a range; far out where it has no bound. */
export function wholeBounds(range: NumberRange): [bigint, bigint] {
  const { min, max } = range;
  let low = min === null ? null : BigInt(Math.ceil(min));
  let high = max === null ? null : BigInt(Math.floor(max));
  if (low !== null && range.isMinExclusive && Number(low) === min) low += 1n;
  if (high !== null && range.isMaxExclusive && Number(high) === max) high -= 1n;
  const lowest = low ?? (high !== null && high < -widest ? high * 10n : -widest);
  const highest = high ?? (low !== null && low > widest ? low * 10n : widest);
  return [lowest, highest];
}

/** From one positive number to another. */
function positive(builder: GrammarBuilder, low: bigint, high: bigint): RuleId {
  const parts: RuleId[] = [];
  for (let length = String(low).length; length <= String(high).length; length++) {
    const least = 10n ** BigInt(length - 1);
    const from = low > least ? low : least;
    const to = high < least * 10n - 1n ? high : least * 10n - 1n;
    parts.push(digitsBetween(builder, String(from), String(to)));
  }
  return builder.choice(...parts);
}

/** Strings of digits of one length, from one to another. */
function digitsBetween(builder: GrammarBuilder, low: string, high: string): RuleId {
  const rest = low.length - 1;
  if (rest < 0) return builder.text("");
  if (/^0*$/.test(low) && /^9*$/.test(high)) return digits(builder, low.length, low.length);
  const [a, b] = [Number(low[0]), Number(high[0])];
  if (a === b) {
    return builder.sequence(
      builder.text(String(a)),
      digitsBetween(builder, low.slice(1), high.slice(1)),
    );
  }
  const between =
    a + 1 <= b - 1
      ? [builder.sequence(digitOf(builder, a + 1, b - 1), digits(builder, rest, rest))]
      : [];
  return builder.choice(
    builder.sequence(
      builder.text(String(a)),
      digitsBetween(builder, low.slice(1), "9".repeat(rest)),
    ),
    ...between,
    builder.sequence(
      builder.text(String(b)),
      digitsBetween(builder, "0".repeat(rest), high.slice(1)),
    ),
  );
}

/** Decimal numbers of a range; undefined when there is none. */
export function decimalRange(builder: GrammarBuilder, range: NumberRange): RuleId | undefined {
  const { min, max, isMinExclusive, isMaxExclusive } = range;
  const parts: RuleId[] = [];
  if (max === null || max > 0 || (max === 0 && !isMaxExclusive)) {
    const isFromZero = min === null || min < 0;
    const low = { value: isFromZero ? 0 : min, isExclusive: isFromZero ? false : isMinExclusive };
    const high = { value: max, isExclusive: isMaxExclusive };
    parts.push(...notNegative(builder, low, high));
  }
  if (min === null || min < 0) {
    const isFromZero = max === null || max >= 0;
    const low = {
      value: isFromZero ? 0 : -max,
      // There is no need for a zero with a sign.
      isExclusive: isFromZero || isMaxExclusive,
    };
    const high = { value: min === null ? null : -min, isExclusive: isMinExclusive };
    const below = notNegative(builder, low, high);
    parts.push(...below.map((rule) => builder.sequence(builder.text("-"), rule)));
  }
  return parts.length === 0 ? undefined : builder.choice(...parts);
}

interface Bound<V> {
  readonly value: V;
  readonly isExclusive: boolean;
}

function notNegative(
  builder: GrammarBuilder,
  low: Bound<number>,
  high: Bound<number | null>,
): RuleId[] {
  const from = decimalOf(low.value);
  const to = high.value === null ? { whole: widest + 1n, fraction: "" } : decimalOf(high.value);
  const isMaxExclusive = high.value === null || high.isExclusive;
  if (from.whole > to.whole) return [];
  // Digits after the point that a double can still represent.
  const places = Math.max(1, 15 - String(to.whole).length);
  if (from.whole === to.whole) {
    const inside = fractionsBetween(
      builder,
      from.fraction,
      low.isExclusive,
      to.fraction,
      isMaxExclusive,
      places,
    );
    return inside === undefined ? [] : [builder.sequence(builder.text(String(from.whole)), inside)];
  }
  const parts: RuleId[] = [
    builder.sequence(
      builder.text(String(from.whole)),
      pointed(builder, fractionsFrom(builder, from.fraction, low.isExclusive, places), {
        isOptional: from.fraction === "" && !low.isExclusive,
      }),
    ),
  ];
  const between = integersBetween(builder, from.whole + 1n, to.whole - 1n);
  if (between !== undefined) {
    const any = pointed(builder, digits(builder, 1, places), { isOptional: true });
    parts.push(builder.sequence(between, any));
  }
  const upTo = fractionsUpTo(builder, to.fraction, isMaxExclusive, places);
  if (to.fraction !== "" || !isMaxExclusive) {
    const rest =
      upTo === undefined ? builder.text("") : pointed(builder, upTo, { isOptional: true });
    parts.push(builder.sequence(builder.text(String(to.whole)), rest));
  }
  return parts;
}

function pointed(
  builder: GrammarBuilder,
  fraction: RuleId,
  { isOptional }: { isOptional: boolean },
): RuleId {
  const rule = builder.sequence(builder.text("."), fraction);
  return isOptional ? builder.optional(rule) : rule;
}

/** Digits after a point that are not less than some. */
function fractionsFrom(
  builder: GrammarBuilder,
  least: string,
  isExclusive: boolean,
  places: number,
): RuleId {
  if (least === "") {
    if (!isExclusive) return digits(builder, 1, places);
    // Anything but zeros alone.
    return builder.sequence(
      builder.repeat(builder.text("0"), 0, places - 1),
      digitOf(builder, 1, 9),
      digits(builder, 0, places),
    );
  }
  const [first, rest] = [Number(least[0]), least.slice(1)];
  const more = Math.max(1, places - 1);
  const same =
    rest === "" && !isExclusive
      ? digits(builder, 0, more)
      : fractionsFrom(builder, rest, isExclusive, more);
  const above =
    first < 9 ? [builder.sequence(digitOf(builder, first + 1, 9), digits(builder, 0, more))] : [];
  return builder.choice(builder.sequence(builder.text(String(first)), same), ...above);
}

/** Digits after a point that are not more than some; undefined when only none are. */
function fractionsUpTo(
  builder: GrammarBuilder,
  most: string,
  isExclusive: boolean,
  places: number,
): RuleId | undefined {
  if (most === "") return isExclusive ? undefined : builder.repeat(builder.text("0"), 1, 2);
  const [first, rest] = [Number(most[0]), most.slice(1)];
  const more = Math.max(1, places - 1);
  const below =
    first > 0 ? [builder.sequence(digitOf(builder, 0, first - 1), digits(builder, 0, more))] : [];
  const further = fractionsUpTo(builder, rest, isExclusive, more);
  // Where the digits are the same up to the end, they are the bound itself.
  const mayEnd = rest !== "" || !isExclusive;
  const same =
    further === undefined
      ? mayEnd
        ? [builder.text(String(first))]
        : []
      : [builder.sequence(builder.text(String(first)), builder.optional(further))];
  const parts = [...below, ...same];
  return parts.length === 0 ? undefined : builder.choice(...parts);
}

/** The point and digits after it between two bounds of one whole part. */
function fractionsBetween(
  builder: GrammarBuilder,
  low: string,
  isMinExclusive: boolean,
  high: string,
  isMaxExclusive: boolean,
  places: number,
): RuleId | undefined {
  const parts: RuleId[] = [];
  if (low === "" && !isMinExclusive && (high !== "" || !isMaxExclusive)) {
    parts.push(builder.text(""));
  }
  // Bounds are written with the same number of digits; then they differ, if at all, within them.
  const length = Math.min(places + 2, Math.max(low.length, high.length) + 2);
  const [a, b] = [low.padEnd(length, "0"), high.padEnd(length, "0")];
  const from = BigInt(a) + (isMinExclusive || a.length < low.length ? 1n : 0n);
  const to = BigInt(b) - (isMaxExclusive ? 1n : 0n);
  if (from <= to) {
    const text = (value: bigint): string => String(value).padStart(length, "0");
    const inside = digitsBetween(builder, text(from), text(to));
    parts.push(builder.sequence(builder.text("."), inside));
  }
  return parts.length === 0 ? undefined : builder.choice(...parts);
}

/** A number that is not negative as digits before and after the point, without zeros at the end. */
function decimalOf(value: number): { whole: bigint; fraction: string } {
  const [, digitsText = "", fractionText = "", exponentText = "0"] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  const exponent = Number(exponentText);
  const all = digitsText + fractionText;
  const point = digitsText.length + exponent;
  const whole = point <= 0 ? "0" : all.slice(0, point).padEnd(point, "0");
  const fraction = point <= 0 ? "0".repeat(-point) + all : all.slice(point);
  return { whole: BigInt(whole), fraction: fraction.replace(/0+$/, "") };
}

function digits(builder: GrammarBuilder, min: number, max: number): RuleId {
  return builder.repeat(builder.byte([0x30, 0x39]), min, max);
}

function digitOf(builder: GrammarBuilder, first: number, last: number): RuleId {
  return builder.byte([0x30 + first, 0x30 + last]);
}
