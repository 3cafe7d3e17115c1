import { supervisedDatum, type DatumLike, type SamplingClient, type Tokenizer } from "tinker-ts";
import type { Exchange } from "./task.js";

/** Data to learn from, and how many tokens of it count. */
export interface Lesson {
  readonly data: readonly DatumLike[];
  readonly tokenCount: number;
}

/** Turns exchanges into tokens: one turn of the user, one of the assistant, in the ChatML format. */
export class Chat {
  readonly #tokenizer: Tokenizer;
  /** The token that ends a turn. */
  readonly turnEnd: number;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
    this.turnEnd = tokenizer.tokenToId("<|im_end|>") ?? tokenizer.namedTokens.eos?.id ?? 0;
  }

  /** The tokens up to where the assistant begins. */
  prompt(question: string): number[] {
    const text = `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
    return [...this.#tokenizer.encode(text, { addSpecialTokens: false })];
  }

  /** Data to learn from: questions are read, answers learned. */
  lesson(exchanges: readonly Exchange[]): Lesson {
    let tokenCount = 0;
    const data = exchanges.map(({ question, answer }) => {
      const prompt = this.prompt(question);
      const reply = [...this.#tokenizer.encode(answer, { addSpecialTokens: false }), this.turnEnd];
      tokenCount += reply.length;
      return supervisedDatum(prompt, reply);
    });
    return { data, tokenCount };
  }

  /** Asks questions, all at once, and returns the most probable answers. */
  async ask(sampling: SamplingClient, questions: readonly string[]): Promise<string[]> {
    const samplingParams = { maxTokens: 32, temperature: 0, stop: [this.turnEnd] };
    const responses = await Promise.all(
      questions.map((question) =>
        sampling.sample({ prompt: this.prompt(question), samplingParams }),
      ),
    );
    return responses.map(({ sequences }) => this.read(sequences[0]!.tokens));
  }

  /** The text of sampled tokens. */
  read(tokens: Int32Array | readonly number[]): string {
    return this.#tokenizer.decode(tokens, { skipSpecialTokens: true }).trim();
  }
}
