import type { Tokenizer } from "@tinker-ts/hub";
import type { SamplingClient } from "tinker-ts";
import type { CommandContext } from "../command.js";
import type { OpenService } from "./with-service.js";

/** The tokenizer of a sampler's model, from the server where it hands them out, else from the hub. */
export async function loadTokenizer(
  { terminal: { env } }: CommandContext,
  { fetchPath, bounds }: OpenService,
  sampling: SamplingClient,
): Promise<Tokenizer> {
  const {
    parseTokenizer,
    loadTokenizer: loadFolder,
    resolveModel,
  } = await import("@tinker-ts/hub");
  const model = await sampling.getBaseModel(bounds);
  const query = new URLSearchParams({ model }).toString();
  const response = await fetchPath(`/api/v1/tokenizer?${query}`, { signal: bounds.signal });
  if (response.ok) {
    const { decodeJson } = await import("tinker-ts/wire");
    const files = decodeJson("GetTokenizerResponse", await response.json());
    return parseTokenizer({
      tokenizer: files.tokenizer,
      config: files.tokenizerConfig,
      chatTemplate: files.chatTemplate,
    });
  }
  await response.body?.cancel();
  const { id } = await sampling.getTokenizer(bounds);
  const { folder } = await resolveModel(id, { files: "tokenizer", env, signal: bounds.signal });
  return loadFolder(folder, bounds.signal);
}
