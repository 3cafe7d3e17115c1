import { ServiceClient } from "tinker-ts";

/** Where an example runs. */
export interface Place {
  readonly service: ServiceClient;
  readonly baseModel: string;
  /** Whether everything happens in this process. */
  readonly isHere: boolean;
  /** Whether it is the small model that comes along, here or at a server that was given it. */
  readonly isSmall: boolean;
}

/**
 * Opens the engine in this process; or, when TINKER_API_KEY or TINKER_BASE_URL is set, the hosted
 * service or a server of your own. TINKER_MODEL chooses the model.
 */
export function connect(): Place {
  const { TINKER_API_KEY: key, TINKER_BASE_URL: url, TINKER_MODEL: model } = process.env;
  const isHere = url === "local:" || (!key && !url);
  const baseModel = model || (isHere ? "tinker-ts/sprout" : "Qwen/Qwen3-4B-Instruct-2507");
  return {
    service: new ServiceClient(isHere ? { baseUrl: "local:" } : {}),
    baseModel,
    isHere,
    isSmall: baseModel.endsWith("sprout"),
  };
}
