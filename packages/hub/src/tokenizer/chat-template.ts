import { HubError } from "../errors.js";
import { isObject, type JsonObject } from "../files/json.js";
import { compileTemplate, type CompiledTemplate } from "./jinja.js";
import { MarkQuoter, RenderedChat, type ChatEncoder } from "./rendered-chat.js";

/** One message of a conversation; templates may read more fields than these two. */
export interface ChatMessage {
  /** Who speaks: `system`, `user`, `assistant`, `tool`. */
  readonly role: string;
  /** What is said: text, or parts in the form the template expects. */
  readonly content?: unknown;
  /** Whatever else the template reads, such as `tool_calls`. */
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

/** One chat template of a model, ready to render. */
export class ChatTemplate {
  /** The template as the model's files have it. */
  readonly source: string;
  readonly #render: CompiledTemplate;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #encoder: ChatEncoder;
  readonly #quoter: MarkQuoter;

  private constructor(
    source: string,
    render: CompiledTemplate,
    specialTokens: Readonly<Record<string, string>>,
    encoder: ChatEncoder,
  ) {
    this.source = source;
    this.#render = render;
    this.#specialTokens = specialTokens;
    this.#encoder = encoder;
    this.#quoter = new MarkQuoter(encoder.addedTokens.keys());
  }

  /** Reads a template; the template engine is loaded with the first one. */
  static async compile(
    templates: ChatTemplates,
    name: string,
    specialTokens: Readonly<Record<string, string>>,
    encoder: ChatEncoder,
  ): Promise<ChatTemplate> {
    const source = chooseTemplate(templates, name);
    const render = await compileTemplate(source).catch((cause: unknown) => {
      throw templateFailed(cause);
    });
    return new ChatTemplate(source, render, specialTokens, encoder);
  }

  /** Renders a conversation so that it can be encoded without any of its texts becoming a mark. */
  render(messages: readonly ChatMessage[], options: RenderChatOptions = {}): RenderedChat {
    const quoted = this.#quoter.quote({ messages, tools: options.tools ?? null });
    const text = this.renderText(quoted as { messages: readonly ChatMessage[] }, options);
    return new RenderedChat({ text, quoter: this.#quoter, encoder: this.#encoder });
  }

  /** Renders messages and tools to a text, just as they are. */
  renderText(
    conversation: { messages: readonly ChatMessage[]; tools?: readonly unknown[] | null },
    options: Omit<RenderChatOptions, "tools"> = {},
  ): string {
    try {
      return this.#render({
        ...this.#specialTokens,
        tools: null,
        ...conversation,
        documents: null,
        add_generation_prompt: options.addGenerationPrompt ?? false,
        ...options.variables,
      });
    } catch (cause) {
      throw templateFailed(cause);
    }
  }
}

function templateFailed(cause: unknown): HubError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new HubError("chat_template_failed", `The chat template failed: ${reason}`, { cause });
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
