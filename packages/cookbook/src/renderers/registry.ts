import { Tokenizer } from "@tinker-ts/hub";
import { chatTemplateRenderer, type ChatTemplateOptions } from "./chat-template-renderer.js";
import type { ChatFormat } from "./chat-format.js";
import { builtInFormats } from "./families/index.js";
import { FormatRenderer } from "./format-renderer.js";
import { RendererError } from "./renderer-error.js";
import type { Renderer, RendererTokenizer } from "./renderer.js";

/** Options of renderers; each uses those that apply to its format. */
export interface RendererOptions extends ChatTemplateOptions {
  /** Leaves reasoning out of earlier turns. @default like the model's own template */
  readonly stripThinkingFromHistory?: boolean;
  /** DeepSeek: later system messages become messages of the user instead of an error. @default false */
  readonly systemRoleAsUser?: boolean;
  /** gpt-oss: the date in its system message, YYYY-MM-DD; set it for reproducible data. @default today */
  readonly currentDate?: string;
  /**
   * Nemotron: writes a trained turn without reasoning in the form that can be sampled after its prompt. The
   * model's own template writes another form, and so does the Python cookbook. @default false
   */
  readonly reachableTurns?: boolean;
  /** The model, if one renderer serves models that differ in details. */
  readonly model?: string;
}

/** Makes a renderer for a tokenizer. */
export type RendererFactory = (
  tokenizer: RendererTokenizer,
  options: RendererOptions,
) => Renderer | Promise<Renderer>;

const registered = new Map<string, RendererFactory>();

/** Registers a custom renderer; it replaces a built-in one of the same name. */
export function registerRenderer(name: string, factory: RendererFactory): void {
  registered.set(name, factory);
}

/** Removes a custom renderer; returns whether there was one. */
export function unregisterRenderer(name: string): boolean {
  return registered.delete(name);
}

/** The names of all renderers, including custom ones. */
export function listRenderers(): string[] {
  return [...new Set([...Object.keys(builtInFormats), "chat_template", ...registered.keys()])];
}

/** Whether there is a renderer of this name. */
export function isRendererRegistered(name: string): boolean {
  return listRenderers().includes(name);
}

/** The renderer of a name. */
export async function getRenderer(
  name: string,
  tokenizer: RendererTokenizer,
  options: RendererOptions = {},
): Promise<Renderer> {
  const own = registered.get(name);
  if (own) return own(tokenizer, options);
  if (name === "chat_template") return chatTemplateRenderer(withTemplates(tokenizer), options);
  if (Object.hasOwn(builtInFormats, name)) {
    return createRenderer(builtInFormats[name]!(options), tokenizer);
  }
  if (name === "tml_v0") {
    throw new RendererError(
      'The renderer "tml_v0" of the Inkling models is not available: their layout is defined by a native codec ' +
        "that is not published. Use these models through an OpenAI-style service instead.",
    );
  }
  throw new RendererError(
    `There is no renderer "${name}". There are ${listRenderers().join(", ")}.`,
  );
}

/** The renderer of a chat format, such as a custom one. */
export function createRenderer(format: ChatFormat, tokenizer: RendererTokenizer): Renderer {
  return new FormatRenderer(format, tokenizer);
}

function withTemplates(tokenizer: RendererTokenizer): Tokenizer {
  if (tokenizer instanceof Tokenizer) return tokenizer;
  throw new RendererError('The renderer "chat_template" needs a Tokenizer with chat templates.');
}
