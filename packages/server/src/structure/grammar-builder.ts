import type { Grammar, Rule } from "@tinker-ts/engine";
import { SchemaRefusal } from "./schema-refusal.js";

/** The index of a rule in its grammar. */
export type RuleId = number;

/** Rules of one grammar; more would take the engine too long to prepare. An object of 5,000 properties has 30,000. */
const maxRules = 40_000;

/** Collects the rules of a grammar; equal rules are one. */
export class GrammarBuilder {
  readonly #rules: (Rule | null)[] = [];
  readonly #known = new Map<string, RuleId>();

  /** A fixed text. */
  text(text: string): RuleId {
    return this.#add({ kind: "text", text });
  }

  /** One byte within ranges. */
  byte(...ranges: (readonly [number, number])[]): RuleId {
    return this.#add({ kind: "byte", ranges });
  }

  /** One after the other. */
  sequence(...items: readonly RuleId[]): RuleId {
    return items.length === 1 ? items[0]! : this.#add({ kind: "sequence", items });
  }

  /** One of several; none at all can never come. */
  choice(...items: readonly RuleId[]): RuleId {
    const unique = [...new Set(items)];
    return unique.length === 1 ? unique[0]! : this.#add({ kind: "choice", items: unique });
  }

  /** Repetition; `max` null means unbounded. */
  repeat(item: RuleId, min: number, max: number | null): RuleId {
    return this.#add({ kind: "repeat", item, min, max });
  }

  /** Once or not at all. */
  optional(item: RuleId): RuleId {
    return this.choice(item, this.text(""));
  }

  /** A place for a rule that is made later, so that rules can contain themselves. */
  reserve(): RuleId {
    return this.#rules.push(null) - 1;
  }

  /** Fills a reserved place with a rule. */
  define(reserved: RuleId, meaning: RuleId): void {
    this.#rules[reserved] = { kind: "choice", items: [meaning] };
  }

  /** The grammar of a rule; rejects one without any finite text. */
  finish(start: RuleId): Grammar {
    const rules = this.#rules.map((rule): Rule => rule ?? { kind: "choice", items: [] });
    const canEnd = endingRules(rules);
    if (!canEnd[start]) {
      throw new SchemaRefusal("", "nothing can fulfil it: it contains itself without an end");
    }
    // Rules that never end are removed from every choice, so that each step can be completed.
    const pruned = rules.map((rule): Rule => {
      if (rule.kind === "choice") {
        return { kind: "choice", items: rule.items.filter((item) => canEnd[item]) };
      }
      if (rule.kind === "repeat" && !canEnd[rule.item]) return { kind: "text", text: "" };
      return rule;
    });
    return { rules: pruned, start };
  }

  #add(rule: Rule): RuleId {
    const key = JSON.stringify(rule);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#rules.length >= maxRules) throw new SchemaRefusal("", "it is too large");
    const id = this.#rules.push(rule) - 1;
    this.#known.set(key, id);
    return id;
  }
}

/** Which rules have a finite text. */
function endingRules(rules: readonly Rule[]): boolean[] {
  const canEnd = rules.map(() => false);
  const ends = (rule: Rule): boolean => {
    switch (rule.kind) {
      case "text":
        return true;
      case "byte":
        return rule.ranges.length > 0;
      case "sequence":
        return rule.items.every((item) => canEnd[item]);
      case "choice":
        return rule.items.some((item) => canEnd[item]);
      case "repeat":
        return rule.min === 0 || canEnd[rule.item]!;
    }
  };
  for (let changed = true; changed;) {
    changed = false;
    for (const [id, rule] of rules.entries()) {
      if (canEnd[id] || !ends(rule)) continue;
      canEnd[id] = true;
      changed = true;
    }
  }
  return canEnd;
}
