import type { BaseModel, Sample, Snapshot } from "@tinker-ts/engine";
import { loadTokenizer, type Tokenizer } from "@tinker-ts/hub";

/** How answers are drawn. */
export interface AskOptions {
  /** @default the model without adapter */
  readonly adapter?: Snapshot;
  /** @default 0, the most probable answer */
  readonly temperature?: number;
  /** @default 1 */
  readonly numSamples?: number;
  /** @default 320 */
  readonly maxTokens?: number;
  readonly seed?: number;
}

/** Conversations of one question and its answer with a model that was loaded from a folder. */
export class Conversation {
  readonly tokenizer: Tokenizer;
  readonly #model: BaseModel;

  private constructor(model: BaseModel, tokenizer: Tokenizer) {
    this.#model = model;
    this.tokenizer = tokenizer;
  }

  /** Loads the tokenizer from beside the model. */
  static async with(model: BaseModel): Promise<Conversation> {
    if (model.folder === null) throw new Error("a model from memory has no tokenizer");
    return new Conversation(model, await loadTokenizer(model.folder));
  }

  /** The tokens up to where the answer begins. */
  async prompt(question: string): Promise<Int32Array> {
    const text = await this.tokenizer.renderChat([{ role: "user", content: question }], {
      addGenerationPrompt: true,
    });
    return this.tokenizer.encode(text, { addSpecialTokens: false });
  }

  /** The tokens of an answer and of the end of its turn. */
  answer(text: string): Int32Array {
    const [turnEnd = 0] = this.#model.config.eosTokenIds;
    return Int32Array.of(...this.tokenizer.encode(text, { addSpecialTokens: false }), turnEnd);
  }

  /** Answers to a question. */
  async ask(question: string, options: AskOptions = {}): Promise<readonly Sample[]> {
    const { adapter, temperature = 0, numSamples = 1, maxTokens = 320, seed = 1 } = options;
    const { samples } = await this.#model.sample({
      prompt: await this.prompt(question),
      temperature,
      numSamples,
      maxTokens,
      seed,
      stopTokens: this.#model.config.eosTokenIds,
      ...(adapter === undefined ? {} : { adapter }),
    });
    return samples;
  }

  /** The most probable answer to a question. */
  async say(question: string, options: AskOptions = {}): Promise<string> {
    const [sample] = await this.ask(question, options);
    return this.read(sample?.tokens ?? []);
  }

  /** The text of an answer, without the end of its turn. */
  read(tokens: Iterable<number>): string {
    return this.tokenizer.decode(tokens, { skipSpecialTokens: true });
  }
}
