import { lossName } from "../data/loss-name.js";
import type { StudioRun, StudioSeriesInfo } from "tinker-ts/wire/studio";

/** A metric with all of its names: synonyms share one chart. */
export interface Metric {
  /** Its name on the page. */
  readonly name: string;
  /** Its names, the best one first. */
  readonly keys: readonly string[];
}

/** Metrics under one heading. */
export interface Section {
  readonly name: string;
  readonly title: string;
  readonly metrics: readonly Metric[];
}

// The server's own names and those of the cookbook's loops.
const synonyms: readonly Metric[] = [
  { name: "nll", keys: ["nll", "train_mean_nll", "train/nll"] },
  { name: "reward", keys: ["env/all/reward/total", "reward/total", "reward"] },
  { name: "learning rate", keys: ["learning_rate:mean", "optim/lr", "learning_rate"] },
  { name: "kl", keys: ["optim/kl_sample_train_v1", "kl"] },
  { name: "entropy", keys: ["optim/entropy", "entropy"] },
  { name: "eval nll", keys: ["forward/nll", "test/nll", "eval/nll"] },
];

// Shown first.
const firstNames = [
  "nll",
  "loss",
  "eval nll",
  "reward",
  "kl",
  "kl:sum",
  "entropy",
  "env/all/by_group/frac_mixed",
  "env/all/ac_tokens_per_turn",
  "grad_norm:mean",
  "learning rate",
];

const titles: Readonly<Record<string, string>> = {
  "": "Metrics",
  server: "Server: wait, compute, tokens",
  forward: "Passes without gradients",
  optim: "Optimizer",
  time: "Time",
  test: "Test",
  eval: "Evaluation",
};

/**
 * The metrics of runs: important ones under "main", the rest by the part before the first `/`. The loss of reinforcement
 * learning may be below zero, so it is called that and not nll.
 */
export function sectionsOf(
  series: readonly Pick<StudioSeriesInfo, "key">[],
  kind: StudioRun["kind"] = "unknown",
): readonly Section[] {
  const keys = new Set(series.map(({ key }) => key));
  const metrics: Metric[] = [];
  const taken = new Set<string>();
  for (const { name, keys: names } of synonyms) {
    const present = names.filter((key) => keys.has(key));
    if (present.length === 0) continue;
    metrics.push({ name: name === "nll" ? lossName(kind) : name, keys: present });
    for (const key of present) taken.add(key);
  }
  for (const key of keys) if (!taken.has(key)) metrics.push({ name: key, keys: [key] });
  const main = firstNames.flatMap((name) => metrics.find((metric) => metric.name === name) ?? []);
  const sections = new Map<string, Metric[]>();
  for (const metric of metrics) {
    if (main.includes(metric)) continue;
    const [key = ""] = metric.keys;
    const prefix = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
    const members = sections.get(prefix);
    if (members) members.push(metric);
    else sections.set(prefix, [metric]);
  }
  const rest = [...sections]
    .map(([name, members]) => ({
      name: name || "other",
      title: titles[name] ?? name,
      metrics: members.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    }))
    .toSorted(
      (one, other) => order(one.name) - order(other.name) || (one.name < other.name ? -1 : 1),
    );
  return main.length > 0 ? [{ name: "main", title: "", metrics: main }, ...rest] : rest;
}

/** Matches a search text: any part of a name, or a regular expression between slashes. */
export function matcher(text: string): (metric: Metric) => boolean {
  const trimmed = text.trim();
  if (trimmed === "") return () => true;
  const pattern = /^\/(.+)\/?$/.exec(trimmed)?.[1];
  let test = (name: string): boolean => name.toLowerCase().includes(trimmed.toLowerCase());
  if (pattern !== undefined || /[\^$*+?|()[\]\\]/.test(trimmed)) {
    try {
      const expression = new RegExp(pattern?.replace(/\/$/, "") ?? trimmed, "i");
      test = (name) => expression.test(name);
    } catch {
      // Not an expression yet: it is being typed.
    }
  }
  return ({ name, keys }) => test(name) || keys.some(test);
}

// The server's figures come last, they are the same for every run.
function order(name: string): number {
  return name === "server" ? 2 : name === "other" ? 0 : 1;
}
