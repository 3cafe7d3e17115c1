import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { ApiKeys } from "./auth/api-keys.js";
import { Authenticator } from "./auth/authenticator.js";
import { SignedLinks } from "./auth/signed-links.js";
import { createCore } from "./core.js";
import { BodyDecoder } from "./decoding/body-decoder.js";
import { embeddedModelId } from "./engine-port/embedded-model.js";
import type { EngineKit } from "./engine-port/engine-kit.js";
import { unavailable } from "./errors/api-error.js";
import { createHandlers } from "./handlers/index.js";
import { extraPages } from "./handlers/pages.js";
import { refusedRequests } from "./handlers/refused-requests.js";
import { refusalResponse } from "./http/answers.js";
import { promptBytes } from "./http/body-rules.js";
import { receive, type OpenJson } from "./http/read-body.js";
import { errorResponse } from "./openai/openai-error.js";
import { isOpenAiPath, openAiPages } from "./openai/pages.js";
import { createHttpApp } from "./http/app.js";
import { BodyBudget } from "./http/body-budget.js";
import { TurnBudget } from "./http/turn-budget.js";
import { resolveLimits } from "./limits.js";
import type { LogLevel } from "./log/logger.js";
import {
  resolveDataDir,
  resolveDevice,
  resolveLogger,
  resolvePrecision,
  resolvePublicUrl,
  type AppOptions,
} from "./options.js";
import { studioPages } from "./studio/pages.js";
import { systemClock, type Clock } from "./time/clock.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

/** The Tinker API as one function. */
export interface App {
  /** Answers one request. */
  handle(request: Request): Promise<Response>;
  /** Says where the server listens: in the log, and to others who find the data directory in use. */
  announce(url: string): void;
  /** Finishes or leaves in the journal what runs, and lets go of the data directory. */
  close(): Promise<void>;
}

/** What differs between a server and a program that serves itself. */
export interface AppSetting {
  readonly allowAnyModel: boolean;
  readonly logLevel: LogLevel;
  /** Sessions end with the process. */
  readonly closesOldSessions: boolean;
  /** Where the engine comes from. */
  readonly loadKit: (options: AppOptions) => Promise<EngineKit>;
  readonly clock?: Clock;
}

/** Opens the data directory and puts the API in front of it. */
export async function openApp(options: AppOptions, setting: AppSetting): Promise<App> {
  const limits = resolveLimits(options.limits);
  const publicUrl = resolvePublicUrl(options.publicUrl);
  const keys = new ApiKeys(options.apiKeys ?? []);
  const logger = resolveLogger(options, setting.logLevel);
  const clock = setting.clock ?? systemClock;
  const dataDir = resolveDataDir(options.dataDir);
  const precision = resolvePrecision(options);
  const device = resolveDevice(options.device, precision);
  let kit: Promise<EngineKit> | undefined;
  const core = await createCore({
    dataDir,
    durability: options.durability ?? "process",
    models: {
      models: options.models ?? { [embeddedModelId]: embeddedModelId },
      allowAnyModel: options.allowAnyModel ?? setting.allowAnyModel,
      precision,
    },
    limits,
    clock,
    logger,
    loadKit: () => (kit ??= setting.loadKit({ ...options, device })),
    startsEngine: device !== "cpu",
    recording: { capture: options.capture ?? "sample", isOn: options.recording ?? true },
    closesOldSessions: setting.closesOldSessions,
  });
  const { store, metrics } = core.context;
  const secret = Buffer.from(
    await store.write(() =>
      store.settings.getOrMake("secret", () => randomBytes(32).toString("base64")),
    ),
    "base64",
  );
  const decoder = new BodyDecoder();
  const authenticator = new Authenticator(keys, secret, clock);
  const links = new SignedLinks(secret, clock);
  const budget = new BodyBudget(limits.maxBodiesBytes);
  const turns = new TurnBudget();
  const openJson: OpenJson = async (request, owner, form) => {
    const maxBytes = Math.min(promptBytes, limits.maxBodyBytes);
    const rules = { maxBytes, maxDecompressedBytes: maxBytes, isSignal: false };
    const room = budget.open(owner);
    try {
      const parts = await receive({ limits, decoder, turns, clock }, request, rules, room);
      const texts = await decoder.readJson(parts, form, owner);
      await turns.enter();
      return { texts, release: () => room.release() };
    } catch (error) {
      room.release();
      throw error;
    }
  };
  const handle = createHttpApp({
    handlers: createHandlers(core, authenticator, links),
    answerRefused: refusedRequests(core),
    pages: [
      ...extraPages(core, links, authenticator),
      ...studioPages({
        core,
        authenticator,
        openJson,
        version,
        logFolders: options.logFolders ?? [],
        remote: options.remote ?? null,
        publicUrl,
        corsOrigins: options.corsOrigins ?? [],
        threads: options.threads,
      }),
      ...openAiPages({ core, authenticator, openJson, aliases: options.aliases ?? {} }),
    ],
    authenticator,
    limits,
    budget,
    decoder,
    clock,
    turns,
    browsers: {
      corsOrigins: options.corsOrigins ?? [],
      hostNames: keys.isOpen ? publicNames(publicUrl) : null,
    },
    logger,
    dataDir,
    publicUrl,
    onAnswer: (route, status, elapsedMs) =>
      metrics.later(() => {
        metrics.httpRequests.add(1, { route, status: String(status) });
        metrics.httpSeconds.observe(elapsedMs / 1000, { route });
      }),
  });
  const close = async (): Promise<void> => {
    logger.info("stopping");
    await Promise.all([core.close(), decoder.close()]);
    logger.info("stopped");
  };
  let closing: Promise<void> | undefined;
  return {
    async handle(request) {
      if (closing) {
        const isOpenAi = isOpenAiPath(new URL(request.url).pathname);
        const tell = isOpenAi ? errorResponse : refusalResponse;
        return tell(unavailable("the server is shutting down"));
      }
      return handle(request);
    },
    announce(url) {
      store.lock.announce(url);
      logger.info("listening", { url, models: core.bases.names.join(",") || "none", dataDir });
    },
    close: () => (closing ??= close()),
  };
}

/** The name under which a proxy in front makes the server known. */
function publicNames(publicUrl: string | null): string[] {
  return publicUrl === null ? [] : [new URL(publicUrl).hostname];
}
