import type { Tokenizer } from "@tinker-ts/hub";
import type { SamplingClient } from "tinker-ts";
import type { OpenService } from "./with-service.js";

/** The tokenizer of a sampler's model. */
export async function loadTokenizer(
  { bounds }: OpenService,
  sampling: SamplingClient,
): Promise<Tokenizer> {
  return sampling.getTokenizer(bounds);
}
