import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { embeddedModelId } from "../engine-port/embedded-model.js";
import type { EngineKit, ModelFacts } from "../engine-port/engine-kit.js";
import type { EnginePort, LoadedModel } from "../engine-port/engine-port.js";
import { badRequest, notFound } from "../errors/api-error.js";
import type { Logger } from "../log/logger.js";
import { loadModelText, type ModelText } from "./model-text.js";

/** Where base models come from. */
export interface BaseModelOptions {
  /** Folders or hub ids by the name that clients use. */
  readonly models: Readonly<Record<string, string>>;
  /** Whether clients may also name any folder of this machine and any model of the hub. */
  readonly allowAnyModel: boolean;
}

/** A base model that can be used. */
export interface BaseModel extends ModelFacts {
  readonly name: string;
  readonly folder: string;
  /** What a client can load its tokenizer by: the hub id, or the folder on this machine. */
  readonly tokenizerId: string;
}

/** Downloads report every piece; a log is told now and then. */
const fetchLogMs = 5_000;

/**
 * The base models: found on first mention, loaded on first use, shared by everyone from then on.
 * The engine starts with the first model that is loaded.
 */
export class BaseModels {
  readonly #options: BaseModelOptions;
  readonly #loadKit: () => Promise<EngineKit>;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #found = new Map<string, Promise<BaseModel>>();
  readonly #known = new Map<string, BaseModel>();
  readonly #texts = new Map<string, Promise<ModelText>>();
  readonly #loaded = new Map<string, Promise<LoadedModel>>();
  #engine: Promise<EnginePort> | undefined;

  constructor(options: BaseModelOptions, loadKit: () => Promise<EngineKit>, logger: Logger) {
    this.#options = options;
    this.#loadKit = loadKit;
    this.#logger = logger;
  }

  /** The names that the server was set up with. */
  get names(): string[] {
    return Object.keys(this.#options.models);
  }

  /** Whether a name can be a base model here; says which there are when it cannot. */
  check(name: string): void {
    if (Object.hasOwn(this.#options.models, name)) return;
    if (this.#options.allowAnyModel && /[\w.]\/|\/[\w.]/.test(name)) return;
    const known = this.names.length === 0 ? "none is set up" : `there are ${this.names.join(", ")}`;
    throw badRequest("base_model", `${JSON.stringify(name)} is not served here; ${known}`);
  }

  /** Finds a model and reads what its files say; downloads it when it comes from the hub. */
  find(name: string): Promise<BaseModel> {
    this.check(name);
    return remember(this.#found, name, () => this.#findNow(name));
  }

  /** What can be told about a model without fetching anything. */
  async peek(name: string): Promise<BaseModel | undefined> {
    const location = this.#options.models[name] ?? name;
    const isHere = location === embeddedModelId || (await isFolder(location));
    return isHere ? this.find(name) : this.known(name);
  }

  /** What `find` has found out so far, without waiting. */
  known(name: string): BaseModel | undefined {
    return this.#known.get(name);
  }

  /** The model in memory. */
  load(name: string): Promise<LoadedModel> {
    this.check(name);
    return remember(this.#loaded, name, () => this.#loadNow(name));
  }

  /** How a model reads and writes text. */
  text(name: string): Promise<ModelText> {
    return remember(this.#texts, name, async () => loadModelText((await this.find(name)).folder));
  }

  /** The tokenizer files of a model, as they are. */
  async tokenizer(name: string): Promise<TokenizerFiles> {
    const { folder } = await this.find(name);
    const [tokenizer, tokenizerConfig, chatTemplate] = await Promise.all([
      readText(path.join(folder, "tokenizer.json")),
      readText(path.join(folder, "tokenizer_config.json")),
      readText(path.join(folder, "chat_template.jinja")),
    ]);
    if (tokenizer === null) throw notFound(`a tokenizer.json of ${name}`);
    return { tokenizer, tokenizerConfig, chatTemplate };
  }

  /** Forgets the engine and everything in it, after it broke; the next use starts a new one. */
  async reset(): Promise<void> {
    const engine = this.#engine;
    this.#engine = undefined;
    this.#loaded.clear();
    await (await engine?.catch(() => undefined))?.close().catch(() => {});
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.reset();
  }

  async #findNow(name: string): Promise<BaseModel> {
    const location = this.#options.models[name] ?? name;
    const kit = await this.#loadKit();
    let loggedAt = Number.NEGATIVE_INFINITY;
    const { folder, isFromHub } = await kit.findModel(location, {
      onProgress: (progress) => {
        if (performance.now() - loggedAt < fetchLogMs) return;
        loggedAt = performance.now();
        this.#logger.info("fetching model", { model: name, progress });
      },
      signal: this.#stopping.signal,
    });
    const tokenizerId = isFromHub ? location : path.resolve(folder);
    const found = { name, folder, tokenizerId, ...(await kit.readFacts(folder)) };
    this.#known.set(name, found);
    return found;
  }

  async #loadNow(name: string): Promise<LoadedModel> {
    const { folder } = await this.find(name);
    const startedAt = performance.now();
    this.#engine ??= this.#loadKit().then((kit) => kit.createEngine());
    const engine = await this.#engine;
    const model = await engine.loadModel(folder, { signal: this.#stopping.signal });
    this.#logger.info("base model loaded", { model: name, ms: performance.now() - startedAt });
    return model;
  }
}

/** The files that make up a tokenizer: two of JSON and a template. */
export interface TokenizerFiles {
  readonly tokenizer: string;
  readonly tokenizerConfig: string | null;
  readonly chatTemplate: string | null;
}

/** Does something once per key; a failure is forgotten, so the next call tries again. */
function remember<T>(
  cache: Map<string, Promise<T>>,
  key: string,
  make: () => Promise<T>,
): Promise<T> {
  let made = cache.get(key);
  if (!made) {
    made = make();
    cache.set(key, made);
    const current = made;
    made.catch(() => {
      if (cache.get(key) === current) cache.delete(key);
    });
  }
  return made;
}

async function isFolder(location: string): Promise<boolean> {
  const found = await stat(location).catch(() => undefined);
  return found?.isDirectory() ?? false;
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
