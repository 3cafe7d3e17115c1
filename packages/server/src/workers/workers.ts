import { hash } from "node:crypto";
import type { Tokenizer } from "@tinker-ts/hub";
import {
  decodeProto,
  encodeJson,
  ModelInput,
  stringifyJson,
  TensorData,
  type ProtoTypeName,
} from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";
import { LruMap } from "../lru-map.js";
import type { ServerScheduler } from "../scheduler.js";
import { readPayload, type StoredPayload } from "../store/content.js";
import type { AnswerShape } from "../structure/answer-grammar.js";
import { encodeChatText, type ChatText, type EncodedText } from "./chat-text.js";
import {
  type BodyForm,
  checkSize,
  decodeBody,
  type DecodedBody,
  joined,
  type JsonForm,
  readJson,
} from "./decode-body.js";
import { decodePass, type EnginePass } from "./engine-pass.js";
import type { FlatSample } from "./messages.js";
import { WorkerPool } from "./pool.js";

/** What is as small is worked on where it arrives: handing it over would take longer. */
const smallBytes = 64 * 1024;
/** The same for texts that become tokens: a character takes a few microseconds. */
const smallLength = 4096;
/** What a value without text weighs: templates take time for those too. */
const valueLength = 16;
/** Workers, as the resource has turns. */
export const maxWorkers = 3;
/** Longest work on a grammar, grammars that are remembered, and how long one of these may be. */
const [maxGrammarMs, maxGrammars, maxGrammarLength] = [5000, 32, 1 << 20];

/** A grammar as text, which travels between threads more quickly than its rules; or why there is none. */
export type MadeGrammar = { readonly grammar: string } | { readonly problem: string };

/** A tokenizer, and the folder that a worker can load the same one from. */
export interface TextSource {
  readonly tokenizer: Tokenizer;
  readonly folder: string;
}

/**
 * What takes long and needs nothing of the server: bodies to values, passes to arrays, texts to tokens, schemas to
 * grammars. Up to 64 KiB it is done where it arrives, more in a worker; nothing large comes back as objects.
 */
export class Workers {
  readonly #pool: WorkerPool;
  /** The last lines of each owner that are being read: those that come later are read behind them. */
  readonly #lines = new Map<string, Promise<unknown>>();
  readonly #grammars = new LruMap<string, MadeGrammar>(maxGrammars);
  readonly #maxGrammarMs: number;

  constructor(scheduler: ServerScheduler, maxMs = maxGrammarMs) {
    this.#pool = new WorkerPool(scheduler, maxWorkers);
    this.#maxGrammarMs = maxMs;
  }

  /** Unpacks and decodes a body that has arrived in parts; those are used up. */
  async body(owner: string, parts: readonly Uint8Array[], form: BodyForm): Promise<DecodedBody> {
    if (isSmall(parts) && !form.isCompressed) {
      const body = await decodeBody(joined(parts), form);
      if (!(body.value instanceof Object && "payload" in body.value)) checkSize(body.value);
      return body;
    }
    const work = { kind: "body", parts, form } as const;
    const body = (await this.#pool.run(owner, work, { transfer: parts })) as DecodedBody;
    if (form.typeName !== "SampleRequest") return body;
    const { prompt, targetPromptLogprobs: targets, ...rest } = body.value as FlatSample;
    const targetPromptLogprobs = targets && new TensorData(targets);
    const value = { ...rest, prompt: new ModelInput({ chunks: prompt }), targetPromptLogprobs };
    return { ...body, value };
  }

  /**
   * The texts of JSON in a body that has arrived in parts; those are used up. Lines of an owner are read in the
   * order in which they came.
   */
  async json(owner: string, parts: readonly Uint8Array[], form: JsonForm): Promise<string[]> {
    const before = form === "lines" ? this.#lines.get(owner) : undefined;
    if (isSmall(parts) && !before) return readJson(joined(parts), form);
    const work = { kind: "json", parts, form } as const;
    const reading = (async () => {
      await before?.catch(() => {});
      return (await this.#pool.run(owner, work, { transfer: parts })) as string[];
    })();
    if (form === "lines") this.#lines.set(owner, reading);
    try {
      return await reading;
    } finally {
      if (this.#lines.get(owner) === reading) this.#lines.delete(owner);
    }
  }

  /** An accepted pass as the engine wants it. */
  async pass(owner: string, payload: StoredPayload): Promise<EnginePass> {
    if (payload.stored.sizeBytes <= smallBytes) return decodePass(await readPayload(payload));
    // Read there as well: memory for it would have the event loop collect garbage.
    return (await this.#pool.run(owner, { kind: "pass", payload })) as EnginePass;
  }

  /** The JSON text of a result that is kept in its binary form. */
  async resultJson(owner: string, typeName: ProtoTypeName, bytes: Uint8Array): Promise<Uint8Array> {
    if (bytes.length > smallBytes) {
      return (await this.#pool.run(owner, { kind: "result", typeName, bytes })) as Uint8Array;
    }
    return Buffer.from(stringifyJson(encodeJson(typeName, decodeProto(typeName, bytes) as never)));
  }

  /** The tokens of each text. */
  async tokens(
    owner: string,
    { tokenizer, folder }: TextSource,
    texts: readonly string[],
    addSpecialTokens: boolean,
  ): Promise<Int32Array[]> {
    if (texts.reduce((sum, text) => sum + text.length, 0) <= smallLength) {
      return texts.map((text) => tokenizer.encode(text, { addSpecialTokens }));
    }
    const work = { kind: "texts", folder, texts, addSpecialTokens } as const;
    return (await this.#pool.run(owner, work)) as Int32Array[];
  }

  /** The tokens of a conversation, written with the model's own template. */
  async chat(
    owner: string,
    { tokenizer, folder }: TextSource,
    chat: ChatText,
  ): Promise<EncodedText> {
    if (isShort(chat)) return encodeChatText(await tokenizer.chatTemplate(), chat);
    return (await this.#pool.run(owner, { kind: "chat", folder, chat })) as EncodedText;
  }

  /**
   * The grammar of what an answer must look like. Always in a worker, which ends when it takes too long: a short
   * schema can take for ever, by references to references or by a pattern of repetitions.
   */
  async grammar(owner: string, shape: AnswerShape): Promise<MadeGrammar> {
    const key = hash("sha256", JSON.stringify(shape));
    const known = this.#grammars.get(key);
    if (known) return known;
    try {
      const options = { maxMs: this.#maxGrammarMs };
      const made = (await this.#pool.run(
        owner,
        { kind: "grammar", shape },
        options,
      )) as MadeGrammar;
      const isKept = !("grammar" in made) || made.grammar.length <= maxGrammarLength;
      if (isKept) this.#grammars.set(key, made);
      return made;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 413)) throw error;
      return { problem: "the schema is too complex; make it simpler" };
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

function isSmall(parts: readonly Uint8Array[]): boolean {
  return parts.reduce((sum, { length }) => sum + length, 0) <= smallBytes;
}

function isShort(value: unknown): boolean {
  let length = 0;
  const measure = (one: unknown): void => {
    length += typeof one === "string" ? one.length : valueLength;
    if (length > smallLength || typeof one !== "object" || one === null) return;
    for (const part of Object.values(one)) measure(part);
  };
  measure(value);
  return length <= smallLength;
}
