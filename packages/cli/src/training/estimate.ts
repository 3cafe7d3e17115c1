import type { Datum, ServiceClient } from "tinker-ts";

/** Training a token takes about as much work as reading three. */
const passesPerStep = 3;
const probedData = 32;

/** About how many seconds a step on some data will take, by how long the model takes to read a part of it. */
export async function estimateSeconds(options: {
  readonly service: ServiceClient;
  readonly model: string;
  readonly data: readonly Datum[];
  readonly signal: AbortSignal;
}): Promise<number> {
  const { service, model, data, signal } = options;
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const probes = data.slice(0, probedData).map(({ modelInput }) => modelInput);
  // The first time a model reads, it is still being made ready.
  await sampling.computeLogprobs(probes[0]!, { signal });
  const startedAt = performance.now();
  await Promise.all(probes.map((probe) => sampling.computeLogprobs(probe, { signal })));
  const seconds = (performance.now() - startedAt) / 1000;
  const lengthOf = (inputs: readonly { readonly length: number }[]): number =>
    inputs.reduce((sum, { length }) => sum + length, 0);
  const share = lengthOf(data.map(({ modelInput }) => modelInput)) / lengthOf(probes);
  return seconds * share * passesPerStep;
}

/** A time for people. */
export function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
