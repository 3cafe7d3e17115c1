import path from "node:path";
import { Checkpoints } from "./checkpoints/checkpoints.js";
import { StateFolders } from "./checkpoints/state-folders.js";
import type { Context } from "./context/context.js";
import { Grammars } from "./decoding/grammars.js";
import { PassDecoder } from "./decoding/pass-decoder.js";
import { PromptEncoder } from "./decoding/prompt-encoder.js";
import { BaseModels, type BaseModelOptions } from "./engine-host/base-models.js";
import { EngineGuard } from "./engine-host/engine-guard.js";
import { LiveModels } from "./engine-host/live-models.js";
import { SamplerWeights } from "./engine-host/sampler-weights.js";
import { Snapshots } from "./engine-host/snapshots.js";
import type { EngineKit } from "./engine-port/engine-kit.js";
import type { ServerLimits } from "./limits.js";
import type { Logger } from "./log/logger.js";
import { Metrics } from "./metrics/metrics.js";
import { EventHub } from "./recording/event-hub.js";
import { Recorder, type Capture } from "./recording/recorder.js";
import { RequestLedger } from "./queue/request-ledger.js";
import { DirectSamples } from "./service/direct-samples.js";
import { KnownSamplers } from "./service/known-samplers.js";
import { Futures } from "./service/futures.js";
import { Janitor } from "./service/janitor.js";
import { ModelCreation } from "./service/model-creation.js";
import { ModelLanes } from "./service/model-lanes.js";
import { Models } from "./service/models.js";
import { recover } from "./service/recovery.js";
import { Samples } from "./service/samples.js";
import { closeSession, endModel } from "./service/session-closer.js";
import { Sessions } from "./service/sessions.js";
import { Store, type Durability } from "./store/store.js";
import type { Clock } from "./time/clock.js";

/** What the core is made with. */
export interface CoreOptions {
  readonly dataDir: string;
  readonly durability: Durability;
  readonly models: BaseModelOptions;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly loadKit: () => Promise<EngineKit>;
  /** Whether the engine starts at once, so that a device that cannot be used is noticed. */
  readonly startsEngine: boolean;
  /** What is recorded for the studio. */
  readonly recording: { readonly capture: Capture; readonly isOn: boolean };
  /** Sessions cannot outlive the process that serves them: close those found at the start. */
  readonly closesOldSessions: boolean;
}

/** Everything the server does, without HTTP. */
export interface Core {
  readonly context: Context;
  readonly bases: BaseModels;
  readonly sessions: Sessions;
  readonly creation: ModelCreation;
  readonly models: Models;
  readonly samples: Samples;
  /** Samples that are answered on the connection that asked. */
  readonly direct: DirectSamples;
  /** Makes tokens of texts. */
  readonly prompts: PromptEncoder;
  readonly futures: Futures;
  readonly checkpoints: Checkpoints;
  readonly lanes: ModelLanes;
  readonly lives: LiveModels;
  /** Ends a model whatever its client wants. */
  endModel(modelId: string, reason: string): Promise<void>;
  /** Ends a session and everything that belongs to it. */
  closeSession(sessionId: string, reason: string): Promise<void>;
  /** Finishes or leaves in the journal what runs, and lets go of the data directory. */
  close(): Promise<void>;
}

/** Opens a data directory and continues what was going on in it. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const { clock, logger, limits, loadKit } = options;
  const store = new Store(options.dataDir, { durability: options.durability });
  const metrics = new Metrics();
  const ledger = new RequestLedger(store, clock, logger, metrics);
  const passes = new PassDecoder();
  const grammars = new Grammars();
  const prompts = new PromptEncoder();
  const hub = new EventHub();
  const recorder = new Recorder({ store, clock, logger, limits, hub }, options.recording);
  const context: Context = {
    store,
    ledger,
    passes,
    grammars,
    clock,
    logger,
    limits,
    metrics,
    recorder,
  };

  const folders = new StateFolders(path.join(options.dataDir, "checkpoints"), loadKit);
  const bases = new BaseModels(
    { ...options.models, precisionOf: (runId) => store.models.get(runId)?.precision },
    loadKit,
    logger,
  );
  const snapshots = new Snapshots(context, loadKit);
  const weights = new SamplerWeights(
    bases,
    (checkpoint, modelFolder) => checkpoints.read(checkpoint, modelFolder),
    limits,
  );
  const checkpoints: Checkpoints = new Checkpoints(context, folders, (folder) =>
    weights.drop(folder),
  );
  const lives = new LiveModels(context, bases, snapshots);
  const guard = new EngineGuard(logger, async (broken) => {
    lives.reset();
    weights.reset();
    await bases.reset(broken);
  });

  const sessions = new Sessions(context);
  const lanes = new ModelLanes({ context, checkpoints, weights, snapshots, lives, guard });
  const creation = new ModelCreation(context, { sessions, bases, checkpoints, lanes });
  const models = new Models(context, { sessions, bases, lanes });
  const direct = new DirectSamples(context, { bases, weights, checkpoints, guard });
  const samples = new Samples(context, {
    samplers: new KnownSamplers(store.samplers),
    bases,
    weights,
    checkpoints,
    sessions,
    guard,
    direct,
  });
  const futures = new Futures(context, sessions, (request) =>
    request.kind === "sample" ? samples.queue.note(request) : lanes.note(request),
  );

  const parts = { sessions, lanes, lives, snapshots, samples: samples.queue, checkpoints };
  const close = (sessionId: string, reason: string): Promise<void> =>
    closeSession(context, parts, sessionId, reason);
  const janitor = new Janitor(context, { sessions, lanes, checkpoints, closeSession: close });
  addGauges(context, { sessions, lanes, lives, samples, weights });

  try {
    if (options.startsEngine) await bases.start();
    if (options.closesOldSessions) {
      for (const sessionId of sessions.all()) await close(sessionId, "its process ended");
    }
    await recover(context, parts);
    await recorder.removeLeftovers();
  } catch (error) {
    metrics.close();
    await store.close();
    throw error;
  }
  janitor.start();

  return {
    context,
    bases,
    sessions,
    creation,
    models,
    samples,
    direct,
    prompts,
    futures,
    checkpoints,
    lanes,
    lives,
    endModel: (modelId, reason) => endModel(context, parts, modelId, reason),
    closeSession: close,
    async close() {
      janitor.stop();
      ledger.waiters.releaseAll();
      await Promise.all([
        withinMs(limits.shutdownGraceMs, Promise.all([lanes.pause(), samples.queue.pause()])),
        direct.close(limits.shutdownGraceMs),
      ]);
      ledger.seal();
      await recorder.close();
      await Promise.all([
        bases.close(),
        passes.close(),
        grammars.close(),
        prompts.close(),
        futures.noteFetched(),
      ]);
      metrics.close();
      await store.close();
    },
  };
}

/** Waits for work to end, but not longer than this. */
async function withinMs(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}

function addGauges(
  { metrics: { registry }, ledger }: Context,
  parts: {
    sessions: Sessions;
    lanes: ModelLanes;
    lives: LiveModels;
    samples: Samples;
    weights: SamplerWeights;
  },
): void {
  const { sessions, lanes, lives, samples, weights } = parts;
  registry.gauge("tinker_open_sessions", "Sessions", () => sessions.count);
  registry.gauge("tinker_live_models", "Models in memory", () => lives.count);
  registry.gauge("tinker_loaded_samplers", "Sampler weights in memory", () => weights.count);
  registry.gauge("tinker_pending_training", "Waiting or running", () => lanes.pendingCount);
  registry.gauge("tinker_pending_samples", "Waiting or running", () => samples.queue.pendingCount);
  const { places } = samples.direct;
  registry.gauge("tinker_open_streams", "Direct samples that run", () => places.taken);
  registry.gauge("tinker_waiting_streams", "Direct samples that wait", () => places.waiting);
  registry.gauge("tinker_waiting_polls", "Long polls", () => ledger.waiters.count);
}
