import type { StudioRun } from "tinker-ts/wire";
import { toNumber } from "../store/sql.js";

const comparison = /^([\w./:-]+?)(>=|<=|>|<|=)(-?[\d.]+(?:e[+-]?\d+)?)$/i;
const field = /^(model|state|tag|group|name|kind|source):(.+)$/i;

/** Whether a run is meant: `model:qwen state:running tag:sft lr>1e-4 nll<0.5`, and words of its name. */
export function runFilter(text: string): (row: StudioRun, config: () => unknown) => boolean {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map(toTest);
  return (row, config) => tests.every((test) => test(row, config));
}

type Test = (row: StudioRun, config: () => unknown) => boolean;

function toTest(word: string): Test {
  const compared = comparison.exec(word);
  if (compared) {
    const [, name = "", sign = "=", given = ""] = compared;
    const limit = Number(given);
    return (row, config) => {
      const value = numberOf(row, config, name);
      if (value === undefined) return false;
      if (sign === "=") return value === limit;
      const isBeyond = sign.startsWith(">") ? value > limit : value < limit;
      return isBeyond || (sign.endsWith("=") && value === limit);
    };
  }
  const named = field.exec(word);
  if (!named) {
    return (row) => [row.name, row.id, ...row.tags].some((one) => one.toLowerCase().includes(word));
  }
  const [, name, wanted = ""] = named;
  return (row) => textsOf(row, name ?? "").some((one) => one.toLowerCase().includes(wanted));
}

function textsOf(row: StudioRun, name: string): readonly string[] {
  switch (name) {
    case "model":
      return [row.baseModel ?? ""];
    case "state":
      return [row.status];
    case "tag":
      return row.tags;
    case "group":
      return [row.group ?? ""];
    case "kind":
      return [row.kind];
    case "source":
      return [row.source];
    default:
      return [row.name];
  }
}

function numberOf(row: StudioRun, config: () => unknown, name: string): number | undefined {
  if (name === "nll" || name === "reward") return toNumber(row[name]?.last);
  if (name === "step") return row.step;
  if (name === "rank") return row.rank ?? undefined;
  const names = name === "lr" ? ["lr", "learning_rate", "learningrate"] : [name];
  return findNumber(config(), names);
}

/** A number of a nested configuration, by the last part of its name or by all of it. */
function findNumber(value: unknown, names: readonly string[], depth = 0): number | undefined {
  if (typeof value !== "object" || value === null || depth > 8) return undefined;
  for (const [key, entry] of Object.entries(value)) {
    if (typeof entry === "number" && names.includes(key.toLowerCase())) return entry;
    const found = findNumber(entry, names, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
