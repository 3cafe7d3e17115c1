import type { ServiceClient } from "tinker-ts";

/** The context length of a model, if the server reports it. */
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
