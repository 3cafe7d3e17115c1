import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { EngineDevice } from "@tinker-ts/engine";
import { embeddedModelId } from "../engine-port/embedded-model.js";
import type { EngineKit, ModelFacts } from "../engine-port/engine-kit.js";
import type { EnginePort, LoadedModel } from "../engine-port/engine-port.js";
import { ApiError, notFound, unavailable } from "../errors/api-error.js";
import { isMissing } from "../errors/storage-failure.js";
import type { Logger } from "../log/logger.js";
import type { RunPrecision } from "../store/models-table.js";
import { loadModelText, type ModelText } from "./model-text.js";

/** Options of base models. */
export interface BaseModelOptions {
  /** Folders or hub ids by the name that clients use. */
  readonly models: Readonly<Record<string, string>>;
  /** Whether clients may also name any folder of this machine and any model of the hub. */
  readonly allowAnyModel: boolean;
  /** Precisions by model name. */
  readonly precision: { of(model: string): RunPrecision };
  /** The precision of a run, fixed at its creation. */
  readonly precisionOf?: (runId: string) => RunPrecision | undefined;
}

/** A base model that can be used. */
export interface BaseModel extends ModelFacts {
  readonly name: string;
  readonly folder: string;
  /** The source of its tokenizer for clients: the hub id, or the folder on this machine. */
  readonly tokenizerId: string;
}

/** The engine's device and the reason for it. */
export type ComputingDevice = Pick<EngineDevice, "name" | "reason">;

/** Downloads report every piece; the log records progress at intervals. */
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
  #device: ComputingDevice | null = null;
  /** How often the device failed under the engine. */
  #deviceFailures = 0;
  /** The reason for falling back from a GPU to the processor. */
  #takenOver: string | undefined;

  constructor(options: BaseModelOptions, loadKit: () => Promise<EngineKit>, logger: Logger) {
    this.#options = options;
    this.#loadKit = loadKit;
    this.#logger = logger;
  }

  /** The configured names. */
  get names(): string[] {
    return Object.keys(this.#options.models);
  }

  /**
   * The canonical name of a base model, which for a folder is its whole path; lists the models
   * if the name is invalid.
   */
  check(name: string): string {
    if (Object.hasOwn(this.#options.models, name)) return name;
    const isOurs = name.startsWith(`${embeddedModelId.split("/")[0]}/`); // a reserved prefix
    if (this.#options.allowAnyModel && !isOurs && /[\w.]\/|\/[\w.]/.test(name)) {
      return /^\.{0,2}\//.test(name) || existsSync(name) ? path.resolve(name) : name;
    }
    const known = this.names.length === 0 ? "none" : this.names.join(", ");
    throw new ApiError(
      400,
      `base_model: ${JSON.stringify(name)} is not served here; models of this server: ${known}`,
      {
        code: "model_not_found",
      },
    );
  }

  /** Finds a model and reads its configuration; downloads it from the hub if necessary. */
  find(mentioned: string): Promise<BaseModel> {
    const name = this.check(mentioned);
    return remember(this.#found, name, () => this.#findNow(name));
  }

  /** Information about a model, without downloading anything. */
  async peek(name: string): Promise<BaseModel | undefined> {
    const location = this.#options.models[name] ?? name;
    const isHere = location === embeddedModelId || (await isFolder(location));
    return isHere ? this.find(name) : this.known(name);
  }

  /** The result of `find` if it is already known. */
  known(name: string): BaseModel | undefined {
    return this.#known.get(name);
  }

  /** The precision of new runs on a model. */
  precision(mentioned: string): RunPrecision {
    return this.#options.precision.of(this.check(mentioned));
  }

  /**
   * The model in memory, in the precision of a run: its journal then repeats to the same bits,
   * and sampling agrees with training, however the server was started this time.
   */
  load(mentioned: string, runId?: string): Promise<LoadedModel> {
    const name = this.check(mentioned);
    const own = runId === undefined ? undefined : this.#options.precisionOf?.(runId);
    return this.#loadIn(own ?? this.precision(name), name);
  }

  #loadIn(precision: RunPrecision, name: string): Promise<LoadedModel> {
    const key = JSON.stringify([name, precision]);
    return remember(this.#loaded, key, () => this.#loadNow(name, precision));
  }

  /** Whether a model is in memory or being loaded, in any precision. */
  isLoaded(name: string): boolean {
    return [...this.#loaded.keys()].some((key) => (JSON.parse(key) as string[])[0] === name);
  }

  /** The tokenizer and template of a model. */
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

  /** The engine's device; null before it has started. */
  get device(): ComputingDevice | null {
    return this.#device;
  }

  /** Starts the engine, which otherwise waits for the first model. */
  async start(): Promise<void> {
    await this.#startEngine();
  }

  /**
   * Drops the engine and everything in it after a failure; the next use starts a new one. A GPU that failed
   * gets one more chance; one without enough memory would fail at the same place again, so that the processor
   * takes over.
   */
  async reset(broken?: string): Promise<void> {
    if (broken?.startsWith("device_") === true) {
      this.#deviceFailures += 1;
      if (broken === "device_out_of_memory") this.#takenOver ??= "the GPU had not enough memory";
      else if (this.#deviceFailures > 1) this.#takenOver ??= "the GPU failed more than once";
    }
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
    const { folder, isFromHub } = await findModel(kit, location, {
      onProgress: (progress) => {
        if (performance.now() - loggedAt < fetchLogMs) return;
        loggedAt = performance.now();
        this.#logger.info("fetching model", { model: name, progress });
      },
      signal: this.#stopping.signal,
    });
    const tokenizerId = isFromHub ? location : path.resolve(folder);
    const found = { name, folder, tokenizerId, ...(await readFacts(kit, folder)) };
    this.#known.set(name, found);
    return found;
  }

  async #loadNow(name: string, precision: RunPrecision): Promise<LoadedModel> {
    // An engine that starts after the end would keep the process.
    if (this.#stopping.signal.aborted) throw unavailable("the server is shutting down");
    const { folder } = await this.find(name);
    const startedAt = performance.now();
    const engine = await this.#startEngine();
    const { activationBits, ...written } = precision;
    const hasTwoDigits = precision.activations === "int16" && activationBits === undefined;
    if (hasTwoDigits && !(await hasShortDigits(engine))) {
      // 16 bits take the same number of digits here: one model in memory serves old and new runs.
      return this.#loadIn({ ...precision, activationBits: 16 }, name);
    }
    const options = { ...written, ...(hasTwoDigits ? { digits: 2 as const } : {}) };
    const model = await engine.loadModel(folder, { ...options, signal: this.#stopping.signal });
    const ms = performance.now() - startedAt;
    const { leftOut = 0 } = model;
    const parts = leftOut === 0 ? {} : { tensorsOfOtherPartsLeftOut: leftOut };
    this.#logger.info("base model loaded", { model: name, ...model.precision, ...parts, ms });
    if (model.precision.weights !== precision.weights) {
      this.#logger.warn("int8 weights are of no use on this processor: 32 bits are used instead", {
        model: name,
      });
    }
    return model;
  }

  #startEngine(): Promise<EnginePort> {
    this.#engine ??= this.#createEngine();
    const starting = this.#engine;
    starting.catch(() => {
      if (this.#engine === starting) this.#engine = undefined;
    });
    return starting;
  }

  async #createEngine(): Promise<EnginePort> {
    const kit = await this.#loadKit();
    const engine = await this.#createOn(kit);
    const { name, reason } = engine.device ?? { name: "cpu" as const, reason: "" };
    this.#device = { name, reason: this.#takenOver ?? reason };
    this.#logger.info("engine started", { device: name, reason: this.#device.reason });
    return engine;
  }

  async #createOn(kit: EngineKit): Promise<EnginePort> {
    if (this.#takenOver === undefined) {
      try {
        return await kit.createEngine();
      } catch (error) {
        // If a GPU fails to restart, its models move to the processor.
        if (this.#deviceFailures === 0) throw error;
        this.#takenOver = "the GPU failed and did not come back";
        const reason = error instanceof Error ? error.message : String(error);
        this.#logger.error("the GPU did not come back", { reason });
      }
    }
    this.#logger.warn("the processor takes over", { reason: this.#takenOver });
    return kit.createEngine({ device: "cpu" });
  }
}

/** Whether two digits have fewer than 16 bits on this processor. */
async function hasShortDigits(engine: EnginePort): Promise<boolean> {
  const int8 = await engine.checkInt8?.();
  return int8?.isUsed === true && int8.digitBits === 7;
}

/** Finds a model; an unknown name is the caller's error, not the server's. */
async function findModel(
  kit: EngineKit,
  location: string,
  options: Parameters<EngineKit["findModel"]>[1],
): ReturnType<EngineKit["findModel"]> {
  try {
    return await kit.findModel(location, options);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "HubError") throw error;
    const isUnreachable = "code" in error && error.code === "hub_unreachable";
    // 424: what the request depends on failed. Not 5xx, which clients repeat for minutes.
    throw isUnreachable
      ? new ApiError(424, error.message, { code: "hub_unreachable", cause: error })
      : new ApiError(400, error.message, { code: "model_not_found", cause: error });
  }
}

/** Reads a model's configuration; the caller named a model that does not load, and the message names one that does. */
async function readFacts(kit: EngineKit, folder: string): ReturnType<EngineKit["readFacts"]> {
  try {
    return await kit.readFacts(folder);
  } catch (error) {
    if (!(error instanceof Error) || !["EngineError", "HubError"].includes(error.name)) throw error;
    const code = "code" in error ? String(error.code) : "unsupported_model";
    throw new ApiError(400, error.message, { code, cause: error });
  }
}

/** The files that make up a tokenizer: two of JSON and a template. */
export interface TokenizerFiles {
  readonly tokenizer: string;
  readonly tokenizerConfig: string | null;
  readonly chatTemplate: string | null;
}

/** Runs something once per key; a failure is not cached, so that the next call tries again. */
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
    if (isMissing(error)) return null;
    throw error;
  }
}
