import { isUserError, type ServiceClient, type Tokenizer } from "tinker-ts";
import { getRenderer, recommendedRenderer, type Renderer } from "../renderers/index.js";

/** Options of `chooseRenderer`. */
export interface ChooseRendererOptions {
  /** A renderer, or the name of one. */
  readonly renderer?: Renderer | string | undefined;
  /** The base model. */
  readonly model: string;
  readonly tokenizer: Tokenizer;
  /** A checkpoint; its run may have stored the name of its renderer. */
  readonly checkpointPath?: string | undefined;
  readonly service: ServiceClient;
  readonly signal?: AbortSignal | undefined;
  /** Called when the checkpoint was trained with another renderer. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** The chosen renderer, else the one that the checkpoint was trained with, else the recommended one. */
export async function chooseRenderer(options: ChooseRendererOptions): Promise<Renderer> {
  const { renderer, model, tokenizer, checkpointPath } = options;
  if (typeof renderer === "object") return renderer;
  const trainedWith = checkpointPath === undefined ? undefined : await storedRenderer(options);
  if (renderer !== undefined && trainedWith !== undefined && renderer !== trainedWith) {
    options.onWarning?.(
      `${checkpointPath} was trained with the renderer ${trainedWith}, not ${renderer}`,
    );
  }
  const name = renderer ?? trainedWith ?? recommendedRenderer(model, tokenizer);
  return getRenderer(name, tokenizer, { model });
}

/** The renderer that the run stored; runs of other users or of other programs may have none. */
async function storedRenderer(options: ChooseRendererOptions): Promise<string | undefined> {
  const { service, checkpointPath, signal } = options;
  try {
    const rest = service.createRestClient();
    const run = await rest.getTrainingRunByTinkerPath(checkpointPath!, { signal });
    const name = run.userMetadata?.["renderer_name"];
    return typeof name === "string" ? name : undefined;
  } catch (error) {
    if (!isUserError(error)) throw error;
    return undefined;
  }
}
