import type { Grammar } from "@tinker-ts/engine";

/** Repetitions without a bound are no longer than this, beyond their least count. */
const mostMore = 4;

/** Calls inside calls after which the shortest way out is taken. */
const deepEnough = 40;

/** A random text of a grammar; `random` is uniform in [0, 1). */
export function exampleText(grammar: Grammar, random: () => number): string {
  const { rules } = grammar;
  const heights = heightsOf(grammar);
  const parts: number[] = [];
  const write = (id: number, depth: number): void => {
    const rule = rules[id]!;
    switch (rule.kind) {
      case "text":
        parts.push(...Buffer.from(rule.text));
        break;
      case "byte": {
        const [first, last] = rule.ranges[Math.floor(random() * rule.ranges.length)]!;
        parts.push(first + Math.floor(random() * (last - first + 1)));
        break;
      }
      case "sequence":
        for (const item of rule.items) write(item, depth + 1);
        break;
      case "choice": {
        const least = Math.min(...rule.items.map((item) => heights[item]!));
        const items =
          depth < deepEnough ? rule.items : rule.items.filter((item) => heights[item] === least);
        write(items[Math.floor(random() * items.length)]!, depth + 1);
        break;
      }
      case "repeat": {
        const most = Math.min(rule.max ?? Infinity, rule.min + mostMore);
        const more = depth < deepEnough ? Math.floor(random() * (most - rule.min + 1)) : 0;
        for (let count = rule.min + more; count > 0; count--) write(rule.item, depth + 1);
        break;
      }
    }
  };
  write(grammar.start, 0);
  return Buffer.from(parts).toString();
}

/** How deep the shortest text of each rule is nested. */
function heightsOf({ rules }: Grammar): number[] {
  const heights = rules.map(() => Infinity);
  for (let changed = true; changed;) {
    changed = false;
    for (const [id, rule] of rules.entries()) {
      const inside =
        rule.kind === "sequence"
          ? Math.max(-1, ...rule.items.map((item) => heights[item]!))
          : rule.kind === "choice"
            ? Math.min(Infinity, ...rule.items.map((item) => heights[item]!))
            : rule.kind === "repeat" && rule.min > 0
              ? heights[rule.item]!
              : -1;
      if (inside + 1 >= heights[id]!) continue;
      heights[id] = inside + 1;
      changed = true;
    }
  }
  return heights;
}
