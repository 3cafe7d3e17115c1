import type { DeviceChoice } from "@tinker-ts/engine";
import { homedir } from "node:os";
import path from "node:path";
import type { ApiKeyOptions } from "./auth/authenticator.js";
import type { ServerLimits } from "./prices.js";
import { createLogger, type Logger, type LogLevel } from "./log/logger.js";
import type { Capture } from "./recording/recorder.js";
import type { RunPrecision } from "./store/models-table.js";
import type { Durability } from "./store/store.js";

/** How the server is set up, with or without a port. */
export interface AppOptions {
  /** Where everything is kept; in process, `memory` is a temporary folder. @default TINKER_TS_DATA_DIR, else ~/.tinker-ts */
  readonly dataDir?: string;
  /** Base models by the name clients use: a folder or a hub id. @default the embedded `tinker-ts/sprout` */
  readonly models?: Readonly<Record<string, string>>;
  /**
   * Further names for base models and sampler checkpoints on the OpenAI routes, such as
   * `{ "support-bot": "tinker://…" }`; every caller of the server may use their models. @default none
   */
  readonly aliases?: Readonly<Record<string, string>>;
  /**
   * Whether clients may name any folder of this machine and any model of the hub.
   * @default false for a server, true in process
   */
  readonly allowAnyModel?: boolean;
  /** Keys that may use the server; none means that everyone may, as the owner "local". @default none */
  readonly apiKeys?: readonly (string | ApiKeyOptions)[];
  /** What a crash may cost: "process" survives kill -9, "power" also a power failure. @default "process" */
  readonly durability?: Durability;
  readonly limits?: Partial<ServerLimits>;
  /** @default "info" for a server, "warn" in process */
  readonly logLevel?: LogLevel;
  /** Takes the log instead of standard error. */
  readonly logger?: Logger;
  /** Origins of web pages that may call. @default none */
  readonly corsOrigins?: readonly string[];
  /** Where clients reach the server when that is not where it listens; links in answers begin with it. */
  readonly publicUrl?: string;
  /**
   * Whether the server records every training step, so that the studio can show it.
   * @default true
   */
  readonly recording?: boolean;
  /**
   * Which training data, rollouts and samples are kept to be looked at: some of each step, all, or none.
   * @default "sample"
   */
  readonly capture?: Capture;
  /**
   * Frozen weights in 32 bits, or in 8: a quarter of the memory and about twice the speed. Runs keep what
   * they began with. One choice for all models, or choices by the names of models.
   * @default TINKER_TS_WEIGHTS, else "f32"
   */
  readonly weights?: WeightName | Readonly<Record<string, WeightName>>;
  /**
   * How values meet int8 weights: in one digit, which is faster, or in 16 bits, which are as good as
   * exact. @default TINKER_TS_ACTIVATIONS, else "int16"
   */
  readonly activations?: "int8" | "int16";
  /**
   * Whether official clients poll for all samples of a client together. It spares requests where thousands of samples
   * wait, but such clients show no queue state, and one refused poll fails all their samples.
   * @default false
   */
  readonly batchPolling?: boolean;
  /** Folders of runs that others have written, such as the Python cookbook; shown in the studio. @default none */
  readonly logFolders?: readonly string[];
  /** Threads of the engine. @default all cores */
  readonly threads?: number;
  /**
   * What the engine computes on. A GPU is checked when the server starts, and refused with the reason where it
   * cannot be used. @default TINKER_TS_DEVICE, else "cpu"
   */
  readonly device?: DeviceChoice;
  /** Memory the engine may use for weights and activations. @default decided by the engine */
  readonly memoryBytes?: number;
}

/** The data directory of an option, the environment, or the home folder. */
export function resolveDataDir(given: string | undefined): string {
  const chosen = given ?? (process.env["TINKER_TS_DATA_DIR"] || path.join(homedir(), ".tinker-ts"));
  return path.resolve(chosen);
}

const weightNames = ["f32", "int8"] as const;
const activationNames = ["int8", "int16"] as const;

/** How frozen weights can be held. */
export type WeightName = (typeof weightNames)[number];

/** What base models are computed with. */
export interface PrecisionChoice {
  /** What a model is computed with, by its name. */
  of(model: string): RunPrecision;
  /** Whether some have weights in 8 bits. */
  readonly hasInt8: boolean;
}

/** What base models are computed with, by the options or the environment. */
export function resolvePrecision(
  options: Pick<AppOptions, "models" | "allowAnyModel" | "weights" | "activations">,
  env: NodeJS.ProcessEnv = process.env,
): PrecisionChoice {
  const byModel = typeof options.weights === "object" ? options.weights : {};
  const whole = typeof options.weights === "object" ? undefined : options.weights;
  const given = whole ?? (env["TINKER_TS_WEIGHTS"] || undefined);
  const others = given === undefined ? "f32" : oneOf("weights", given, weightNames);
  const own = new Map<string, WeightName>();
  for (const [model, weights] of Object.entries(byModel)) {
    if (options.models !== undefined && options.allowAnyModel !== true) {
      const names = Object.keys(options.models);
      if (!names.includes(model)) {
        throw new RangeError(
          `weights: ${JSON.stringify(model)} is not served here; there are ${names.join(", ")}`,
        );
      }
    }
    own.set(model, oneOf("weights", weights, weightNames));
  }
  const written = options.activations ?? (env["TINKER_TS_ACTIVATIONS"] || undefined);
  const activations =
    written === undefined ? "int16" : oneOf("activations", written, activationNames);
  const hasInt8 = [others, ...own.values()].includes("int8");
  if (options.activations !== undefined && !hasInt8) {
    throw new RangeError(
      `activations: "${options.activations}" says how values meet int8 weights; set weights to "int8" too`,
    );
  }
  return {
    of: (model) => {
      const weights = own.get(model) ?? others;
      if (weights === "f32") return { weights };
      return activations === "int8"
        ? { weights, activations }
        : { weights, activations, activationBits: 16 };
    },
    hasInt8,
  };
}

/** How a precision is written in an option, such as `int8` or `int8 with int8 activations`. */
export function describePrecision({ weights, activations }: RunPrecision): string {
  return activations === "int8" ? `${weights} with int8 activations` : weights;
}

function oneOf<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  const variable = `TINKER_TS_${name.toUpperCase()}`;
  throw new RangeError(
    `${name} (or ${variable}): "${value}" is neither ${known.map((one) => `"${one}"`).join(" nor ")}`,
  );
}

/** The device of an option or the environment; weights in 8 bits are the processor's. */
export function resolveDevice(
  given: DeviceChoice | undefined,
  { hasInt8 }: Pick<PrecisionChoice, "hasInt8">,
  env: NodeJS.ProcessEnv = process.env,
): DeviceChoice {
  const chosen = given ?? (env["TINKER_TS_DEVICE"] || "cpu");
  const where = given === undefined ? "TINKER_TS_DEVICE" : "device";
  if (chosen !== "cpu" && chosen !== "gpu" && chosen !== "auto") {
    throw new RangeError(`${where}: ${JSON.stringify(chosen)} is not one of cpu, gpu and auto`);
  }
  if (!hasInt8 || chosen === "cpu") return chosen;
  if (chosen === "auto") return "cpu";
  throw new RangeError(
    `${where}: a GPU computes with weights in 32 bits alone; use the device "cpu", or weights "f32"`,
  );
}

/** The logger of the options. */
export function resolveLogger(options: AppOptions, defaultLevel: LogLevel): Logger {
  return options.logger ?? createLogger(options.logLevel ?? defaultLevel);
}

/** The public address without a slash at its end. */
export function resolvePublicUrl(given: string | undefined): string | null {
  if (given === undefined) return null;
  if (URL.canParse(given) && /^https?:/.test(given)) return given.replace(/\/+$/, "");
  throw new RangeError(`publicUrl: ${given} is not an address such as https://example.org/tinker`);
}
