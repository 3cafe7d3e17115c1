import { complement, normalized, type CharRange } from "./characters.js";
import type { GrammarBuilder, RuleId } from "./grammar-builder.js";
import type { JsonText } from "./json-text.js";

/** A pattern that cannot be enforced exactly. */
export class PatternRefusal extends Error {
  override readonly name = "PatternRefusal";
}

const digitChars: readonly CharRange[] = [[0x30, 0x39]];
const wordChars: readonly CharRange[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const spaceChars: readonly CharRange[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const lineEnds: readonly CharRange[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
const controls: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };

/** Largest count of a repetition. */
const maxCount = 10_000;

/**
 * The matches of a regular expression, as texts between the quotes of a JSON string.
 *
 * The expression has JavaScript's syntax. Unanchored expressions may have any text before or
 * after them. Lookarounds and back references are not regular and are rejected.
 */
export function patternRule(builder: GrammarBuilder, json: JsonText, pattern: string): RuleId {
  return new PatternReader(builder, json, pattern).read();
}

class PatternReader {
  readonly #builder: GrammarBuilder;
  readonly #json: JsonText;
  readonly #text: string;
  #place = 0;

  constructor(builder: GrammarBuilder, json: JsonText, text: string) {
    this.#builder = builder;
    this.#json = json;
    this.#text = text;
  }

  read(): RuleId {
    const alternatives: RuleId[] = [];
    const anything = this.#builder.repeat(this.#json.char, 0, null);
    do {
      const isFromStart = this.#take("^");
      const body = this.#sequence();
      const isToEnd = this.#take("$");
      const parts = [...(isFromStart ? [] : [anything]), body, ...(isToEnd ? [] : [anything])];
      alternatives.push(this.#builder.sequence(...parts));
    } while (this.#take("|"));
    if (this.#place < this.#text.length) throw this.#refuse("is not understood");
    return this.#builder.choice(...alternatives);
  }

  #alternatives(): RuleId {
    const rules = [this.#sequence()];
    while (this.#take("|")) rules.push(this.#sequence());
    return this.#builder.choice(...rules);
  }

  #sequence(): RuleId {
    const items: RuleId[] = [];
    while (this.#place < this.#text.length && !"|)$".includes(this.#next())) {
      items.push(this.#repeated(this.#atom()));
    }
    return items.length === 0 ? this.#builder.text("") : this.#builder.sequence(...items);
  }

  #atom(): RuleId {
    const char = this.#char();
    switch (char) {
      case "(":
        return this.#group();
      case "[":
        return this.#json.charOf(this.#class());
      case ".":
        return this.#json.charOf(complement(lineEnds));
      case "\\":
        return this.#json.charOf(this.#escape());
      case "^":
        throw this.#refuse("has ^ in the middle");
      case "*":
      case "+":
      case "?":
        throw this.#refuse(`has ${char} with nothing before it`);
      default: {
        const code = char.codePointAt(0) ?? 0;
        return this.#json.charOf([[code, code]]);
      }
    }
  }

  #group(): RuleId {
    if (this.#take("?")) {
      if (this.#take("<") && !/^[=!]/.test(this.#rest())) {
        this.#place = this.#text.indexOf(">", this.#place) + 1;
      } else if (!this.#take(":")) {
        throw this.#refuse("looks ahead or behind");
      }
    }
    const inside = this.#alternatives();
    if (this.#take(")")) return inside;
    throw this.#refuse(this.#take("$") ? "has $ in the middle" : "has a ( that is not closed");
  }

  #repeated(item: RuleId): RuleId {
    let result = item;
    const counts = /^\{(\d+)(,(\d*))?\}/.exec(this.#rest());
    if (counts) {
      this.#place += counts[0].length;
      const min = Number(counts[1]);
      const max = counts[2] === undefined ? min : counts[3] === "" ? null : Number(counts[3]);
      if (min > maxCount || (max ?? 0) > maxCount) throw this.#refuse("counts too far");
      if (max !== null && max < min) throw this.#refuse("counts backwards");
      result = this.#builder.repeat(item, min, max);
    } else if (this.#take("*")) result = this.#builder.repeat(item, 0, null);
    else if (this.#take("+")) result = this.#builder.repeat(item, 1, null);
    else if (this.#take("?")) return this.#lazy(this.#builder.optional(item));
    else return result;
    return this.#lazy(result);
  }

  /** Lazy and greedy repetitions match the same texts. */
  #lazy(rule: RuleId): RuleId {
    this.#take("?");
    if (/^[*+?]|^\{\d/.test(this.#rest())) throw this.#refuse("repeats a repetition");
    return rule;
  }

  #class(): CharRange[] {
    const isNegated = this.#take("^");
    const ranges: CharRange[] = [];
    while (!this.#take("]")) {
      if (this.#place >= this.#text.length) throw this.#refuse("has a [ that is not closed");
      const first = this.#classItem();
      if (this.#next() !== "-" || this.#text[this.#place + 1] === "]") {
        ranges.push(...first);
        continue;
      }
      this.#char();
      const last = this.#classItem();
      const [from, to] = [single(first), single(last)];
      if (from === undefined || to === undefined || from > to) {
        throw this.#refuse("has a range that is none");
      }
      ranges.push([from, to]);
    }
    return isNegated ? complement(ranges) : normalized(ranges);
  }

  #classItem(): readonly CharRange[] {
    const char = this.#char();
    if (char === "\\") return this.#escape();
    const code = char.codePointAt(0) ?? 0;
    return [[code, code]];
  }

  #escape(): readonly CharRange[] {
    const char = this.#char();
    if (char === "d") return digitChars;
    if (char === "w") return wordChars;
    if (char === "s") return spaceChars;
    if (char === "D") return complement(digitChars);
    if (char === "W") return complement(wordChars);
    if (char === "S") return complement(spaceChars);
    const code = /^(?:x([\da-f]{2})|u([\da-f]{4})|u\{([\da-f]+)\})/i.exec(char + this.#rest());
    if (code) {
      this.#place += code[0].length - 1;
      const value = Number.parseInt(code[1] ?? code[2] ?? code[3] ?? "", 16);
      return [[value, value]];
    }
    const control = controls[char];
    if (control !== undefined) return [[control, control]];
    if (/[\da-z]/i.test(char)) throw this.#refuse(`has \\${char}, which is not supported`);
    const own = char.codePointAt(0) ?? 0;
    return [[own, own]];
  }

  #rest(): string {
    return this.#text.slice(this.#place);
  }

  #next(): string {
    return this.#text[this.#place] ?? "";
  }

  #take(char: string): boolean {
    if (this.#next() !== char) return false;
    this.#place += 1;
    return true;
  }

  #char(): string {
    const code = this.#text.codePointAt(this.#place);
    if (code === undefined) throw this.#refuse("ends too early");
    const char = String.fromCodePoint(code);
    this.#place += char.length;
    return char;
  }

  #refuse(problem: string): PatternRefusal {
    return new PatternRefusal(`${JSON.stringify(this.#text)} ${problem}`);
  }
}

function single(ranges: readonly CharRange[]): number | undefined {
  const [range] = ranges;
  return ranges.length === 1 && range && range[0] === range[1] ? range[0] : undefined;
}
