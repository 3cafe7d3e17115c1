import { HubError } from "../errors.js";
import { isObject, type JsonObject } from "../files/json.js";

/** One message of a conversation; templates may read more fields than these two. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/** What a chat template is rendered with, besides the messages. */
export interface RenderChatOptions {
  /** Ends with the opening of the assistant's next turn. @default false */
  readonly addGenerationPrompt?: boolean;
  /** Functions that the model may call, in the form its template expects. */
  readonly tools?: readonly unknown[];
  /** Name of the template, for models that have several. @default "default" */
  readonly template?: string;
  /** Further variables of the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A model's chat templates by name; most models have the one named "default", many have none. */
export type ChatTemplates = ReadonlyMap<string, string>;

/** Collects templates from `tokenizer_config.json` and `chat_template.jinja`; the file of its own wins. */
export function collectChatTemplates(
  config: JsonObject | null,
  jinjaFile: string | null,
): ChatTemplates {
  const templates = new Map<string, string>();
  const inConfig = config?.["chat_template"];
  if (typeof inConfig === "string") templates.set("default", inConfig);
  if (Array.isArray(inConfig)) {
    for (const entry of inConfig) {
      if (!isObject(entry)) continue;
      const { name, template } = entry;
      if (typeof name === "string" && typeof template === "string") templates.set(name, template);
    }
  }
  if (jinjaFile !== null) templates.set("default", jinjaFile);
  return templates;
}

/** Renders a conversation to text; the template engine is loaded with the first use. */
export async function renderChat(
  templates: ChatTemplates,
  specialTokens: Readonly<Record<string, string>>,
  messages: readonly ChatMessage[],
  options: RenderChatOptions = {},
): Promise<string> {
  const source = chooseTemplate(templates, options.template ?? "default");
  const { Template } = await import("@huggingface/jinja");
  const variables = {
    ...specialTokens,
    messages,
    tools: options.tools ?? null,
    documents: null,
    add_generation_prompt: options.addGenerationPrompt ?? false,
    ...options.variables,
  };
  try {
    return new Template(source).render(variables);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HubError("chat_template_failed", `The chat template failed: ${reason}`, { cause });
  }
}

function chooseTemplate(templates: ChatTemplates, name: string): string {
  const source = templates.get(name);
  if (source !== undefined) return source;
  const known = [...templates.keys()].join(", ");
  throw new HubError(
    "no_chat_template",
    templates.size === 0
      ? "The model has no chat template: write the prompt as text."
      : `The model has no chat template "${name}"; it has ${known}.`,
  );
}
