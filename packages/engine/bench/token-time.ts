import type { BaseModel, SampleRequest } from "@tinker-ts/engine";

/**
 * Milliseconds of a step of decoding: what so many more tokens of every sample take. Nobody listens to single tokens
 * meanwhile: on two cores whoever hears of them takes one from the engine, which is not what decoding takes.
 */
export async function tokenMs(
  model: BaseModel,
  request: Omit<SampleRequest, "maxTokens" | "onToken">,
  tokens: number,
): Promise<number> {
  const sampleMs = async (maxTokens: number): Promise<number> => {
    const startMs = performance.now();
    await model.sample({ ...request, maxTokens });
    return performance.now() - startMs;
  };
  const firstMs = await sampleMs(1);
  return ((await sampleMs(tokens + 1)) - firstMs) / tokens;
}
