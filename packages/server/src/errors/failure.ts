import { randomBytes } from "node:crypto";
import type { Logger } from "../log/logger.js";
import { ApiError } from "./api-error.js";
import { DamagedError } from "./damaged-error.js";
import { isStorageFailure } from "./storage-failure.js";

/** The cause of a failure: the request or the server. */
export type FailureCategory = "user" | "server" | "unknown";

/** The part of a failed request that its client sees. */
export interface Failure {
  readonly state: "failed";
  readonly error: string;
  readonly category: FailureCategory;
}

/** Why work was given up on purpose; the text is for the client. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";
  readonly category: FailureCategory;

  constructor(message: string, category: FailureCategory = "user") {
    super(message);
    this.category = category;
  }
}

/** Separates mistakes of the user, which are answered in full, from faults of the server, which go to the log. */
export function toFailure(error: unknown, logger: Logger): Failure {
  if (error instanceof StoppedError) return failed(error.message, error.category);
  if (error instanceof ApiError) {
    return failed(error.message, error.status < 500 ? "user" : "server");
  }
  if (error instanceof DamagedError) return failed(error.message, "server");
  if (isStorageFailure(error)) {
    logger.error("cannot write to the data directory", { error: error.message });
    return failed(
      "the server cannot write to its disk, which may be full; nothing was saved or changed, try again later",
      "server",
    );
  }
  if (isEngineRefusal(error)) {
    return failed(inApiWords(error.message), "user");
  }
  // The operator can fix it, and with local: that is the caller.
  if (isEngineError(error) && error.code === "runtime_missing") {
    return failed(error.message, "server");
  }
  const reference = randomBytes(4).toString("hex");
  logger.error("a request failed in the server", {
    reference,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return failed(`the server failed; its log has the details under ${reference}`, "server");
}

/** Whether the engine refused what it was asked for, which then has changed nothing. */
export function isEngineRefusal(error: unknown): error is Error & { code: string } {
  return isEngineError(error) && error.category === "user";
}

/** What an engine fails with when nothing in its memory can be used any more: itself, or the GPU under it. */
const crashes: ReadonlySet<string> = new Set([
  "engine_failed",
  "device_lost",
  "device_out_of_memory",
  "device_failed",
]);

/** Whether the engine itself broke, so that nothing in its memory can be used any more. */
export function isEngineCrash(error: unknown): error is Error & { code: string } {
  return isEngineError(error) && crashes.has(error.code);
}

/** True when an operation changed an adapter in part, so that the engine cannot use it any more. */
export function isAdapterBroken(error: unknown): boolean {
  return isEngineError(error) && error.code === "adapter_broken";
}

/** The engine speaks of `tokens` and `inputs` where clients know `model_input` and `loss_fn_inputs`. */
function inApiWords(message: string): string {
  return message
    .replace(/^(learningRate|weightDecay|gradClipNorm|beta1|beta2|eps) is\b/, (_, name: string) => {
      const field = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return `adam_params.${field} is`;
    })
    .replace(/^(data\[\d+\])\.tokens\b/, "$1.model_input")
    .replace(/^(data\[\d+\])\.inputs\b/, "$1.loss_fn_inputs");
}

function failed(error: string, category: FailureCategory): Failure {
  return { state: "failed", error, category };
}

// By name and not by class: the packages they come from are loaded on demand only.
function isEngineError(error: unknown): error is Error & { code: string; category: string } {
  return error instanceof Error && (error.name === "EngineError" || error.name === "HubError");
}
