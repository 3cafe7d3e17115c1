import { ServiceClient } from "tinker-ts";

/** Where an example runs. */
export interface Place {
  readonly service: ServiceClient;
  readonly baseModel: string;
  /** Whether everything happens in this process. */
  readonly isHere: boolean;
}

/**
 * Opens the engine in this process; or, when TINKER_API_KEY or TINKER_BASE_URL is set, the hosted
 * service or a server of your own. TINKER_MODEL chooses the model.
 */
export function connect(): Place {
  const { TINKER_API_KEY: key, TINKER_BASE_URL: url, TINKER_MODEL: model } = process.env;
  const isHere = url === "local:" || (!key && !url);
  return {
    service: new ServiceClient(isHere ? { baseUrl: "local:" } : {}),
    baseModel: model || (isHere ? "tinker-ts/sprout" : "Qwen/Qwen3-4B-Instruct-2507"),
    isHere,
  };
}
