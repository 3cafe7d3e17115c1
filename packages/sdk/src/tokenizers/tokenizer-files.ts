/** The files that make a tokenizer. */
export interface TokenizerFiles {
  /** `tokenizer.json` */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  /** `tokenizer_config.json` */
  readonly tokenizerConfig: Readonly<Record<string, unknown>> | null;
  /** `chat_template.jinja`, when the template is a file of its own. */
  readonly chatTemplate: string | null;
}

/** Names of the files, as they lie in a model's folder. */
const fileNames = {
  tokenizer: "tokenizer.json",
  tokenizerConfig: "tokenizer_config.json",
  chatTemplate: "chat_template.jinja",
} as const;

/** Reads one of the files; undefined when it does not exist. */
export type ReadTokenizerFile = (name: string) => Promise<string | undefined>;

/** Collects the files from wherever they are; undefined when there is no `tokenizer.json`. */
export async function collectFiles(read: ReadTokenizerFile): Promise<TokenizerFiles | undefined> {
  const tokenizer = await read(fileNames.tokenizer);
  if (tokenizer === undefined) return undefined;
  const [config, template] = await Promise.all([
    read(fileNames.tokenizerConfig),
    read(fileNames.chatTemplate),
  ]);
  return {
    tokenizer: parseObject(tokenizer, fileNames.tokenizer),
    tokenizerConfig: config === undefined ? null : parseObject(config, fileNames.tokenizerConfig),
    chatTemplate: template ?? null,
  };
}

function parseObject(text: string, name: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  throw new SyntaxError(`${name} does not hold a JSON object`);
}
