import { createHmac, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { ApiKeys, Authenticator, localOwner } from "./auth/authenticator.js";
import { SignedLinks } from "./auth/signed-links.js";
import { createCore } from "./core.js";
import { embeddedModelId } from "./engine-port/embedded-model.js";
import type { EngineKit } from "./engine-port/engine-kit.js";
import { unavailable } from "./errors/api-error.js";
import { createHandlers } from "./handlers/index.js";
import { extraPages } from "./handlers/pages.js";
import { refusalResponse } from "./http/answers.js";
import { BodyRoom, IgnoredFields, type OpenJson, promptBytes, receive } from "./http/read-body.js";
import { errorResponse } from "./openai/openai-error.js";
import { isOpenAiPath, openAiPages } from "./openai/pages.js";
import { createHttpApp } from "./http/app.js";
import { resolveLimits } from "./prices.js";
import type { LogLevel } from "./log/logger.js";
import {
  resolveDataDir,
  describePrecision,
  resolveDevice,
  resolveLogger,
  resolvePrecision,
  resolvePublicUrl,
  type AppOptions,
} from "./options.js";
import { localPages } from "./local/local-pages.js";
import type { Holder } from "./store/holder-note.js";
import { LogFolders } from "./studio/log-folders.js";
import { LogIntake } from "./studio/log-intake.js";
import { studioPages } from "./studio/pages.js";
import { systemClock, type Clock } from "./time/clock.js";
import { refusedRequests } from "./training/routes.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

/** The Tinker API as one function. */
export interface App {
  /** Answers one request. */
  handle(request: Request): Promise<Response>;
  /** Says where the server listens: in the log, and to others who find the data directory in use. */
  announce(url: string): void;
  /** Finishes or leaves in the journal what runs, and releases the data directory. */
  close(): Promise<void>;
}

/** What differs between a server and a program that serves itself. */
export interface AppSetting {
  readonly allowAnyModel: boolean;
  readonly logLevel: LogLevel;
  /** Sessions end with the process. */
  readonly closesOldSessions: boolean;
  /** What the process is to others that find its data directory in use. */
  readonly kind: Holder["kind"];
  /** Ends the process, so that another server can take the data directory; only local servers are asked to. */
  readonly handOver?: () => void;
  /** Where the engine comes from. */
  readonly loadKit: (options: AppOptions) => Promise<EngineKit>;
  readonly clock?: Clock;
}

/** Opens the data directory and puts the API in front of it. */
export async function openApp(options: AppOptions, setting: AppSetting): Promise<App> {
  const limits = resolveLimits(options.limits);
  const publicUrl = resolvePublicUrl(options.publicUrl);
  const ownKeys = new ApiKeys(options.apiKeys ?? []);
  const logger = resolveLogger(options, setting.logLevel);
  const clock = setting.clock ?? systemClock;
  const dataDir = resolveDataDir(options.dataDir);
  const precision = resolvePrecision(options);
  const device = resolveDevice(options.device, precision);
  let kit: Promise<EngineKit> | undefined;
  const core = await createCore({
    dataDir,
    durability: options.durability ?? "process",
    holder: {
      kind: setting.kind,
      version,
      device,
      weights: typeof options.weights === "object" ? null : describePrecision(precision.of("")),
    },
    aliases: options.aliases,
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
  // Where keys are needed, programs of the same user have one too: that of the note in the data directory.
  const needsKey = !ownKeys.isOpen || setting.kind === "local";
  const localKey = needsKey
    ? `tml-local-${createHmac("sha256", secret).update("local programs").digest("hex")}`
    : null;
  const keys = new ApiKeys([
    ...(options.apiKeys ?? []),
    ...(localKey === null ? [] : [{ key: localKey, owner: localOwner }]),
  ]);
  const authenticator = new Authenticator(keys, secret, clock);
  const links = new SignedLinks(secret, clock);
  const { loop, scheduler, workers } = core.context;
  const openJson: OpenJson = async (request, owner, form) => {
    const maxBytes = Math.min(promptBytes, limits.maxBodyBytes);
    const rules = { maxBytes, maxDecompressedBytes: maxBytes, isSignal: false };
    const room = new BodyRoom(scheduler, owner);
    try {
      const parts = await receive(
        { limits, workers, scheduler, loop, clock },
        request,
        rules,
        room,
      );
      const texts = await workers.json(owner, parts, form);
      await loop.enter();
      return { texts, release: () => room.release() };
    } catch (error) {
      room.release();
      throw error;
    }
  };
  const intake = new LogIntake(core);
  const logFolders = new LogFolders(core, intake, options.logFolders ?? []);
  const handle = createHttpApp({
    handlers: createHandlers(core, authenticator, links, options.batchPolling ?? false),
    answerRefused: refusedRequests(core.runs),
    pages: [
      ...extraPages(core, links, authenticator),
      ...(setting.handOver
        ? localPages(authenticator, {
            handOver: setting.handOver,
            addLogFolders: (folders) => logFolders.add(folders),
            setCapture: (capture) => core.context.recorder.setCapture(capture),
          })
        : []),
      ...studioPages({
        core,
        authenticator,
        openJson,
        version,
        intake,
        folders: logFolders,
        publicUrl,
        corsOrigins: options.corsOrigins ?? [],
        threads: options.threads,
      }),
      ...openAiPages({ core, authenticator, openJson, aliases: options.aliases ?? {} }),
    ],
    authenticator,
    limits,
    workers,
    scheduler,
    clock,
    loop,
    ignoredFields: new IgnoredFields((labels) => metrics.ignoredFields.add(1, labels), logger),
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
    await core.close();
    logger.info("stopped");
  };
  let closing: Promise<void> | undefined;
  return {
    async handle(request) {
      if (closing) {
        const isOpenAi = isOpenAiPath(new URL(request.url).pathname);
        const render = isOpenAi ? errorResponse : refusalResponse;
        return render(unavailable("the server is shutting down"));
      }
      return handle(request);
    },
    announce(url) {
      store.lock.announce(url, localKey);
      logger.info("listening", { url, models: core.bases.names.join(",") || "none", dataDir });
    },
    close: () => (closing ??= close()),
  };
}

/** The name under which a proxy in front makes the server known. */
function publicNames(publicUrl: string | null): string[] {
  return publicUrl === null ? [] : [new URL(publicUrl).hostname];
}
