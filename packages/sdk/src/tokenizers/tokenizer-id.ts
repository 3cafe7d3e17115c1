/** A tokenizer by its place on the Hugging Face hub. */
export interface TokenizerId {
  readonly id: string;
  /** The state of the repository to use; its newest by default. */
  readonly revision: string | null;
}

/** A server's description of a model. */
export interface NamedModel {
  readonly modelName: string | null;
  readonly tokenizerId: string | null;
}

const llama3Tokenizer = "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer";

/** Tokenizers that must be pinned, because their newest state does not fit the served model. */
const pinned: Readonly<Record<string, TokenizerId>> = {
  "moonshotai/Kimi-K2-Thinking": {
    id: "moonshotai/Kimi-K2-Thinking",
    revision: "612681931a8c906ddb349f8ad0f582cb552189cd",
  },
  "moonshotai/Kimi-K2.5": {
    id: "moonshotai/Kimi-K2.5",
    revision: "4d01dfe0332d63057c186e0b262165819efb6611",
  },
  "moonshotai/Kimi-K2.5-Text-Only": {
    id: "moonshotai/Kimi-K2.5",
    revision: "4d01dfe0332d63057c186e0b262165819efb6611",
  },
  "moonshotai/Kimi-K2.6": {
    id: "moonshotai/Kimi-K2.6",
    revision: "b5aabbfb20227ed42becbf5541dbffd213942c58",
  },
};

/** Which tokenizer belongs to a model, by its name and what the server says; undefined without a name. */
export function tokenizerIdOf({ modelName, tokenizerId }: NamedModel): TokenizerId | undefined {
  const name = modelName?.split(":")[0];
  const id = tokenizerId ?? (name ? idFromName(name) : undefined);
  if (!id) return undefined;
  return Object.hasOwn(pinned, id) ? pinned[id] : { id, revision: null };
}

function idFromName(name: string): string {
  if (name.startsWith("meta-llama/Llama-3")) return llama3Tokenizer;
  const parts = name.split("/");
  return parts.length === 3 ? parts.slice(0, 2).join("/") : name;
}
