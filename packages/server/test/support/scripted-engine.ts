import type { BaseModel, SampleResult } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import type { EngineKit } from "../../src/engine-port/engine-kit.js";
import type { EnginePort, LoadedModel } from "../../src/engine-port/engine-port.js";
import { Gates } from "./toy-engine.js";

type SampleRequest = Parameters<BaseModel["sample"]>[0];

/** What a sample is to be: a text, or its tokens. */
export type Script = string | readonly number[];

const facts = { architecture: "qwen3" as const, contextLength: 4096, vocabSize: 2048 };

/** An engine that says what a test tells it to, token by token. */
export class ScriptedEngine implements EnginePort {
  /** "token" is passed before every token, "sample" before the first. */
  readonly gates = new Gates();
  /** All requests, in order. */
  readonly requests: SampleRequest[] = [];
  /** Fails behind so many tokens. */
  failsAfter = Infinity;
  /** Tokens that were given out. */
  told = 0;
  #scripts: readonly Script[] = [""];
  #tokenizer: Tokenizer | undefined;

  setTokenizer(tokenizer: Tokenizer): void {
    this.#tokenizer = tokenizer;
  }

  /** What the next samples say, in turn; behind each text comes the end of the turn. */
  says(...scripts: readonly Script[]): void {
    this.#scripts = scripts;
    this.#next = 0;
  }

  #next = 0;

  async loadModel(): Promise<LoadedModel> {
    return {
      contextLength: facts.contextLength,
      precision: { weights: "f32" },
      vocabSize: facts.vocabSize,
      sample: (request) => this.#sample(request),
      createAdapter: () => Promise.reject(new Error("nothing is trained here")),
    };
  }

  async close(): Promise<void> {}

  async #sample(request: SampleRequest): Promise<SampleResult> {
    this.requests.push(request);
    const tokenizer = this.#tokenizer!;
    await this.gates.pass("sample", request.signal);
    const samples: SampleResult["samples"][number][] = [];
    for (let index = 0; index < (request.numSamples ?? 1); index++) {
      const script = this.#scripts[Math.min(this.#next++, this.#scripts.length - 1)]!;
      const end = tokenizer.specialTokens.get("<|im_end|>")!;
      const all =
        typeof script === "string"
          ? [...tokenizer.encode(script, { addSpecialTokens: false }), end]
          : script;
      const tokens: number[] = [];
      let stopReason: "stop" | "length" = "length";
      for (const token of all) {
        if (tokens.length >= request.maxTokens) break;
        await this.gates.pass("token", request.signal);
        request.signal?.throwIfAborted();
        if (this.told >= this.failsAfter) throw new Error("the engine broke");
        this.told += 1;
        tokens.push(token);
        const top = Array.from({ length: request.topLogprobs ?? 0 }, (_, rank) => ({
          token: rank === 0 ? token : rank,
          logprob: -0.5 - rank,
        }));
        request.onToken?.({
          sampleIndex: index,
          token,
          logprob: -0.5,
          ...(top.length > 0 ? { top } : {}),
        });
        // A turn of the event loop between tokens, as between steps of an engine.
        await new Promise((resolve) => setImmediate(resolve));
        const text = tokenizer.decode(tokens);
        const isStop =
          request.stopTokens?.includes(token) === true ||
          request.stopStrings?.some((stop) => text.includes(stop)) === true;
        if (!isStop) continue;
        stopReason = "stop";
        break;
      }
      samples.push({
        tokens: Int32Array.from(tokens),
        logprobs: Float32Array.from(tokens, () => -0.5),
        stopReason,
      });
    }
    return { samples, promptCacheHitTokens: 0 };
  }
}

/** The scripted engine as the server gets it. */
export function scriptedKit(engine: ScriptedEngine): EngineKit {
  const unused = () => Promise.reject(new Error("nothing is saved here"));
  return {
    createEngine: async () => engine,
    findModel: async (location) => ({ folder: location, isFromHub: false }),
    readFacts: async () => facts,
    writeAdapter: unused,
    readAdapter: unused,
    readForeignAdapter: unused,
  };
}
