import { complement, intersection, oneOf, type CharRange } from "./characters.js";
import type { GrammarBuilder, RuleId } from "./grammar-builder.js";

/** Characters that need no escape between quotes. */
const plainChars = complement([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x7f, 0x9f],
]);

/** Characters that have a short escape. */
const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** Digits before or after the point of a number: more would be lost in a double. */
const maxDigits = 15;

/**
 * The pieces of JSON.
 *
 * Between values there is at most one space, after a comma or a colon: small models would otherwise repeat spaces
 * for ever. Numbers have no more digits than a double can represent.
 */
export class JsonText {
  readonly #builder: GrammarBuilder;
  #any: RuleId | undefined;
  #char: RuleId | undefined;

  constructor(builder: GrammarBuilder) {
    this.#builder = builder;
  }

  get comma(): RuleId {
    return this.#builder.choice(this.#builder.text(","), this.#builder.text(", "));
  }

  get colon(): RuleId {
    return this.#builder.choice(this.#builder.text(":"), this.#builder.text(": "));
  }

  /** Exactly this value. */
  literal(value: unknown): RuleId {
    const builder = this.#builder;
    if (Array.isArray(value)) {
      const items = value.flatMap((item, index) =>
        index === 0 ? [this.literal(item)] : [this.comma, this.literal(item)],
      );
      return builder.sequence(builder.text("["), ...items, builder.text("]"));
    }
    if (typeof value === "object" && value !== null) {
      const members = Object.entries(value).flatMap(([key, item], index) => [
        ...(index === 0 ? [] : [this.comma]),
        builder.text(JSON.stringify(key)),
        this.colon,
        this.literal(item),
      ]);
      return builder.sequence(builder.text("{"), ...members, builder.text("}"));
    }
    return builder.text(JSON.stringify(value));
  }

  /** One character of a string, as it is or escaped. */
  get char(): RuleId {
    return (this.#char ??= this.#makeChar());
  }

  #makeChar(): RuleId {
    const builder = this.#builder;
    const hex = builder.byte([0x30, 0x39], [0x41, 0x46], [0x61, 0x66]);
    // No surrogates, which would have to come in pairs.
    const escaped = builder.choice(
      builder.sequence(builder.byte([0x30, 0x39], [0x41, 0x43], [0x45, 0x46]), hex, hex, hex),
      builder.sequence(builder.byte([0x61, 0x63], [0x65, 0x66]), hex, hex, hex),
      builder.sequence(
        builder.byte([0x44, 0x44], [0x64, 0x64]),
        builder.byte([0x30, 0x37]),
        hex,
        hex,
      ),
    );
    const short = builder.byte(...Array.from('"\\/bfnrt').map((char) => pair(char.charCodeAt(0))));
    return builder.choice(
      oneOf(builder, plainChars),
      builder.sequence(builder.text("\\"), short),
      builder.sequence(builder.text("\\u"), escaped),
    );
  }

  /** One character of some, as it is or with its short escape. */
  charOf(ranges: readonly CharRange[]): RuleId {
    const builder = this.#builder;
    const has = (code: number): boolean =>
      ranges.some(([first, last]) => first <= code && code <= last);
    const escapes = Object.entries(shortEscapes)
      .filter(([char]) => has(char.charCodeAt(0)))
      .map(([, escape]) => builder.text(escape));
    return builder.choice(oneOf(builder, intersection(ranges, plainChars)), ...escapes);
  }

  /** A string with so many characters. */
  string(min = 0, max: number | null = null): RuleId {
    return this.quoted(this.#builder.repeat(this.char, min, max));
  }

  /** A string with this between its quotes. */
  quoted(content: RuleId): RuleId {
    const quote = this.#builder.text('"');
    return this.#builder.sequence(quote, content, quote);
  }

  get digit(): RuleId {
    return this.#builder.byte([0x30, 0x39]);
  }

  /** Any whole number. */
  get integer(): RuleId {
    const builder = this.#builder;
    const long = builder.sequence(
      builder.byte([0x31, 0x39]),
      builder.repeat(this.digit, 0, maxDigits - 1),
    );
    return builder.choice(
      builder.text("0"),
      builder.sequence(builder.optional(builder.text("-")), long),
    );
  }

  /** Any number. */
  get number(): RuleId {
    const builder = this.#builder;
    const whole = builder.choice(
      builder.text("0"),
      builder.sequence(builder.byte([0x31, 0x39]), builder.repeat(this.digit, 0, maxDigits - 1)),
    );
    const fraction = builder.sequence(builder.text("."), builder.repeat(this.digit, 1, maxDigits));
    const exponent = builder.sequence(
      builder.byte(pair(0x45), pair(0x65)),
      builder.optional(builder.byte(pair(0x2b), pair(0x2d))),
      builder.repeat(this.digit, 1, 2),
    );
    return builder.sequence(
      builder.optional(builder.text("-")),
      whole,
      builder.optional(fraction),
      builder.optional(exponent),
    );
  }

  /** Any value. */
  get any(): RuleId {
    if (this.#any !== undefined) return this.#any;
    const builder = this.#builder;
    const any = builder.reserve();
    this.#any = any;
    const meaning = builder.choice(
      this.string(),
      this.number,
      builder.text("true"),
      builder.text("false"),
      builder.text("null"),
      this.anyObject,
      this.list("[", any, "]", 0, null),
    );
    builder.define(any, meaning);
    return any;
  }

  /** Any object. */
  get anyObject(): RuleId {
    return this.list("{", this.member(this.string(), this.any), "}", 0, null);
  }

  /** A key and its value. */
  member(key: RuleId, value: RuleId): RuleId {
    return this.#builder.sequence(key, this.colon, value);
  }

  /** So many items between marks, with commas. */
  list(open: string, item: RuleId, close: string, min: number, max: number | null): RuleId {
    const builder = this.#builder;
    const [opening, closing] = [builder.text(open), builder.text(close)];
    const more = builder.repeat(
      builder.sequence(this.comma, item),
      Math.max(0, min - 1),
      max === null ? null : Math.max(0, max - 1),
    );
    const some = max === 0 ? [] : [builder.sequence(item, more)];
    const none = min === 0 ? [builder.text("")] : [];
    return builder.sequence(opening, builder.choice(...some, ...none), closing);
  }
}

function pair(code: number): CharRange {
  return [code, code];
}
