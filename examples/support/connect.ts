import { APIError, ServiceClient, TinkerError } from "tinker-ts";

/** Where an example runs. */
export interface Place {
  readonly service: ServiceClient;
  readonly baseModel: string;
  /** Whether everything happens in this process. */
  readonly isHere: boolean;
  /** Whether it is the small model that comes along, here or at a server that was given it. */
  readonly isSmall: boolean;
}

/** What the hosted service trains unless it is told otherwise. */
const hostedModel = "Qwen/Qwen3-4B-Instruct-2507";

/**
 * Opens the engine in this process; or, when TINKER_API_KEY or TINKER_BASE_URL is set, the hosted
 * service or a server of your own. TINKER_MODEL chooses the model.
 */
export async function connect(): Promise<Place> {
  process.once("uncaughtException", endWithSentence);
  const { TINKER_API_KEY: key, TINKER_BASE_URL: url, TINKER_MODEL: model } = process.env;
  const isHere = url === "local:" || (!key && !url);
  const service = new ServiceClient(isHere ? { baseUrl: "local:" } : {});
  const usual = isHere ? "tinker-ts/sprout" : hostedModel;
  const baseModel = model || (isHere || !url ? usual : await modelOf(service));
  return { service, baseModel, isHere, isSmall: baseModel.endsWith("sprout") };
}

/** A server of one's own has models of its own: the usual one if it is there, else the first. */
async function modelOf(service: ServiceClient): Promise<string> {
  const { supportedModels } = await service.getServerCapabilities();
  const names = supportedModels.flatMap(({ modelName }) => modelName ?? []);
  const name = names.includes(hostedModel) ? hostedModel : names[0];
  if (name === undefined) {
    throw new TinkerError("The server lists no models; name one with TINKER_MODEL.");
  }
  return name;
}

/** What a service refuses is a sentence, in its own words; anything else is a mistake of the program. */
function endWithSentence(error: unknown): void {
  const body: unknown = error instanceof APIError ? error.body : null;
  const words = (body as { error?: unknown } | null)?.error;
  if (typeof words === "string") console.error(`Error: ${words}`);
  else console.error(error instanceof TinkerError ? `Error: ${error.message}` : error);
  process.exit(1);
}
