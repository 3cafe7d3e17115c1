import type { ServiceClient } from "tinker-ts";

/** How many positions a model takes, as far as the server tells. */
export async function findContextLength({
  service,
  model,
  signal,
}: {
  readonly service: ServiceClient;
  readonly model: string;
  readonly signal?: AbortSignal | undefined;
}): Promise<number | undefined> {
  const { supportedModels } = await service.getServerCapabilities({ signal });
  const found = supportedModels.find(({ modelName }) => modelName === model);
  return found?.maxContextLength ?? undefined;
}
