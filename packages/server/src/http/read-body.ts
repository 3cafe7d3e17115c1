import type { RouteName, WireTypeName, WireValue } from "tinker-ts/wire";
import { ApiError, tooMany } from "../errors/api-error.js";
import type { ServerLimits } from "../prices.js";
import type { LoopTurns } from "../loop-turns.js";
import type { ServerScheduler, Turn } from "../scheduler.js";
import type { Clock } from "../time/clock.js";
import type { JsonForm } from "../workers/decode-body.js";
import type { ReceivedPass } from "../workers/engine-pass.js";
import type { Workers } from "../workers/workers.js";
import type { Logger } from "../log/logger.js";

/** Bodies up to this length, when they say it, are read at once. */
const smallBytes = 16 * 1024;
/** Connections bring thousands of parts of a large body, and each would be handed to a worker by itself. */
const pieceBytes = 1 << 20;

/** What bodies are read with. */
export interface BodyParts {
  readonly limits: ServerLimits;
  readonly workers: Workers;
  readonly scheduler: ServerScheduler;
  readonly loop: LoopTurns;
  readonly clock: Clock;
}

/** What typed bodies are read with besides. */
export interface TypedBodyParts extends BodyParts {
  readonly ignoredFields: IgnoredFields;
}

/** An expected body: its form, its bounds and its owner. */
export interface ExpectedBody {
  readonly typeName: WireTypeName;
  readonly rules: BodyRules;
  readonly room: BodyRoom;
  readonly owner: string;
}

/** The texts of JSON in a body that has arrived; it counts as one of its owner's until it is let go. */
export interface JsonBody {
  readonly texts: readonly string[];
  readonly release: () => void;
}

/** Receives JSON within the limits of the server. */
export type OpenJson = (request: Request, owner: string, form: JsonForm) => Promise<JsonBody>;

/**
 * The memory of a body under way, from its first byte to its answer. What counts is what has arrived, not what was
 * announced, and an owner gets at most half of what the others leave.
 */
export class BodyRoom {
  readonly #scheduler: ServerScheduler;
  readonly #owner: string;
  #turns: Turn[] = [];

  constructor(scheduler: ServerScheduler, owner: string) {
    this.#scheduler = scheduler;
    this.#owner = owner;
  }

  /** Takes more, or refuses when there is none left. */
  take(size: number): void {
    const request = { resource: "bodies", owner: this.#owner, size } as const;
    const turn = this.#scheduler.tryTurn(request, 1 / 2);
    if (turn) this.#turns.push(turn);
    else throw tooMany("too many large requests of yours at once; try again in a moment", 1000);
  }

  /** Gives everything back. */
  release(): void {
    for (const turn of this.#turns) turn.end();
    this.#turns = [];
  }
}

/** Reads, decompresses and decodes the body of a request; refuses what is too large before reading it. */
export async function readBody(
  parts: TypedBodyParts,
  request: Request,
  { typeName, rules, room, owner }: ExpectedBody,
): Promise<unknown> {
  const isCompressed = checkEncoding(request);
  const received = await receive(parts, request, rules, room);
  await parts.loop.enter();
  const mediaType = request.headers.get("content-type") ?? "application/json";
  const form = mediaType.includes("application/x-protobuf") ? "proto" : "json";
  const { maxDecompressedBytes } = rules;
  const limits = { ...parts.limits, maxDecompressedBytes };
  const what = { typeName, form, isCompressed, limits: pickLimits(limits) } as const;
  const { value: body, ignored } = await parts.workers.body(owner, received, what);
  parts.ignoredFields.note(request, typeName, ignored);
  // What came is gone by now; what is left of it is what will be kept.
  room.release();
  if (isPass(typeName)) room.take((body as ReceivedPass).payload.length);
  if (typeName === "SampleRequest") room.take(sizeOfPrompt(body as WireValue<"SampleRequest">));
  return body;
}

/** Receives a body as it is; refuses what is too large before reading it. */
export async function receive(
  { limits, clock }: BodyParts,
  request: Request,
  rules: BodyRules,
  room: BodyRoom,
): Promise<Uint8Array[]> {
  const { maxBytes } = rules;
  const declaredBytes = Number(request.headers.get("content-length") ?? 0);
  if (declaredBytes > maxBytes) throw tooLarge(maxBytes);
  // Nearly all bodies are small; the stream of one takes longer to make than to read.
  if (declaredBytes > 0 && declaredBytes <= smallBytes) {
    const whole = await smallBody(request, clock);
    if (!rules.isSignal) room.take(whole.length);
    return [whole];
  }
  const pieces: Uint8Array[] = [];
  let [parts, partBytes, sizeBytes]: [Uint8Array[], number, number] = [[], 0, 0];
  for await (const part of request.body ? pacedBody(request.body, limits, clock) : []) {
    sizeBytes += part.length;
    if (sizeBytes > maxBytes) throw tooLarge(maxBytes);
    if (!rules.isSignal) room.take(part.length);
    parts.push(part);
    partBytes += part.length;
    if (partBytes < pieceBytes) continue;
    pieces.push(Buffer.concat(parts));
    [parts, partBytes] = [[], 0];
  }
  return parts.length === 0 ? pieces : [...pieces, Buffer.concat(parts)];
}

/** Whether a body is compressed, in the one way that is known. */
function checkEncoding({ headers }: Request): boolean {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return false;
  if (encoding === "zstd") return true;
  throw new ApiError(415, `content-encoding ${encoding} is not known; use zstd or none`);
}

/** A token of a prompt or one to score, while it is a number of a list. */
const tokenBytes = 8;

function sizeOfPrompt({ prompt, targetPromptLogprobs }: WireValue<"SampleRequest">): number {
  return prompt.chunks.reduce(
    (sum, chunk) => sum + ("tokens" in chunk ? tokenBytes * chunk.tokens.length : 0),
    tokenBytes * (targetPromptLogprobs?.data.length ?? 0),
  );
}

function isPass(typeName: WireTypeName): boolean {
  return typeName === "ForwardBackwardRequest" || typeName === "ForwardRequest";
}

function pickLimits({ maxDecompressedBytes, maxBatchData, maxPromptTokens }: ServerLimits) {
  return { maxDecompressedBytes, maxBatchData, maxPromptTokens };
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError(
    413,
    `the body is larger than ${maxBytes} bytes; send fewer data per request`,
    // The rest of the body is not read, so the connection cannot be used again.
    { headers: { connection: "close" } },
  );
}

/** What holds for the body of an endpoint. */
export interface BodyRules {
  readonly maxBytes: number;
  /** After decompression. */
  readonly maxDecompressedBytes: number;
  /** Signs of life, polls and the end of a model: never refused because others have sent a lot. */
  readonly isSignal: boolean;
}

/** Room for everything but data: metadata are bounded more tightly by themselves. */
const plainBytes = 192 * 1024;
const signalBytes = 16 * 1024;
const telemetryBytes = 1024 * 1024;
/** Room for what is sampled from. */
export const promptBytes = 4 * 1024 * 1024;

const signals: ReadonlySet<RouteName> = new Set<RouteName>([
  "sessionHeartbeat",
  "retrieveFuture",
  "retrieveFutures",
  "cancelFuture",
  "unloadModel",
]);

const ownBytes: Partial<Record<RouteName, number>> = {
  forward: Infinity,
  forwardBackward: Infinity,
  sample: promptBytes,
  streamSample: promptBytes,
  telemetry: telemetryBytes,
};

/** The rules for an endpoint; only data of training may be really large. */
export function bodyRules(name: RouteName, limits: ServerLimits): BodyRules {
  const isSignal = signals.has(name);
  const bytes = ownBytes[name] ?? (isSignal ? signalBytes : plainBytes);
  return {
    maxBytes: Math.min(bytes, limits.maxBodyBytes),
    maxDecompressedBytes: Math.min(bytes, limits.maxDecompressedBytes),
    isSignal,
  };
}

/** How often the pace is looked at. */
const paceMs = 10_000;

/** Which pace is kept. */
export type BodyPace = Pick<ServerLimits, "minBodyBytesPerSecond" | "bodyTimeoutMs">;

/**
 * The parts of a body as they come. One that trickles in, or takes too long altogether, is given up: it
 * holds memory that others could use.
 */
export async function* pacedBody(
  body: ReadableStream<Uint8Array>,
  pace: BodyPace,
  clock: Clock,
): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  let arrivedBytes = 0;
  let problem: ApiError | undefined;
  const giveUp = (why: string): void => {
    problem = tooSlow(why);
    reader.cancel(problem).catch(() => {});
  };
  let lookedAtBytes = 0;
  let cancelLook = clock.after(paceMs, function look() {
    const perSecond = (arrivedBytes - lookedAtBytes) / (paceMs / 1000);
    lookedAtBytes = arrivedBytes;
    if (perSecond < pace.minBodyBytesPerSecond) giveUp(`at ${Math.round(perSecond)} bytes/s`);
    else cancelLook = clock.after(paceMs, look);
  });
  const cancelEnd = clock.after(pace.bodyTimeoutMs, () =>
    giveUp(`and took more than ${pace.bodyTimeoutMs / 1000} s`),
  );
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (problem) throw problem;
      if (done) return;
      arrivedBytes += value.length;
      yield value;
    }
  } finally {
    cancelLook();
    cancelEnd();
    reader.releaseLock();
  }
}

/** A small body, at once and without a stream; all of it has to be there when the pace would be looked at. */
export async function smallBody(request: Request, clock: Clock): Promise<Uint8Array> {
  let cancelEnd = (): void => {};
  const late = new Promise<never>((_, reject) => {
    cancelEnd = clock.after(paceMs, () => reject(tooSlow(`and took more than ${paceMs / 1000} s`)));
  });
  try {
    return new Uint8Array(await Promise.race([request.arrayBuffer(), late]));
  } finally {
    cancelEnd();
  }
}

function tooSlow(why: string): ApiError {
  return new ApiError(408, `the body came too slowly, ${why}; send it again, in smaller parts`, {
    // The rest of the body is not read, so the connection cannot be used again.
    headers: { connection: "close" },
  });
}

/** Most client versions, and most field names of each. */
const most = 50;
const maxNameLength = 100;

/**
 * Notes the fields of requests that are not known here and were ignored: once in the log, counted in the
 * metrics, by client version and name. Only so many of each are kept, because both come from clients.
 */
export class IgnoredFields {
  readonly #count: (labels: { client: string; field: string }) => void;
  readonly #logger: Logger;
  readonly #fields = new Map<string, Set<string>>();

  constructor(count: (labels: { client: string; field: string }) => void, logger: Logger) {
    this.#count = count;
    this.#logger = logger;
  }

  note({ headers }: Request, typeName: WireTypeName, paths: readonly string[]): void {
    if (paths.length === 0) return;
    const client = clientOf(headers);
    const fields = this.#fields.get(client) ?? new Set();
    if (fields.size === 0 && this.#fields.size >= most) return;
    this.#fields.set(client, fields);
    for (const path of paths) {
      const field = `${typeName}.${path}`.slice(0, maxNameLength);
      if (!fields.has(field)) {
        if (fields.size >= most) continue;
        fields.add(field);
        this.#logger.info("ignored a request field that is not known here", { client, field });
      }
      this.#count({ client, field });
    }
  }
}

/** Name and version by which a client introduces itself. */
function clientOf(headers: Headers): string {
  const agent = headers.get("user-agent") ?? "unknown";
  const version = headers.get("x-stainless-package-version");
  const name = version && !agent.includes(version) ? `${agent} ${version}` : agent;
  return name.slice(0, maxNameLength);
}
