import { differentiate, type GradientSeed } from "../../graph/differentiate.js";
import { keptValues, type KeptKind } from "../../graph/kept-values.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/at.js";

/** Values of a graph by the names of their feeds or results. */
export type NamedValues = Readonly<Record<string, Tensor>>;

/** Name of the result that holds the gradient of a feed. */
export function gradientName(feed: string): string {
  return `gradient.${feed}`;
}

/** Gradients of some values under their names as results. */
export function namedGradients(seeds: readonly GradientSeed[], wrt: NamedValues): NamedValues {
  const gradients = differentiate(seeds, Object.values(wrt));
  return Object.fromEntries(
    Object.keys(wrt).map((name, index) => [gradientName(name), at(gradients, index)]),
  );
}

/** A seed for every result, fed as its gradient. */
export function fedSeeds(results: NamedValues): readonly GradientSeed[] {
  return Object.entries(results).map(([name, of]) => ({
    of,
    gradient: of.graph.input(gradientName(name), of.shape),
  }));
}

/** What the way to `results` computes and `gradients` read, named for the one to hand to the other. */
export function namedKept(
  results: NamedValues,
  gradients: NamedValues,
  kind: KeptKind,
  prefix = "kept",
): NamedValues {
  const kept = keptValues(Object.values(results), Object.values(gradients), kind);
  return Object.fromEntries(kept.map((tensor, index) => [`${prefix}.${index}`, tensor]));
}
