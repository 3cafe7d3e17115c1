import path from "node:path";
import { Checkpoints } from "./checkpoints/checkpoints.js";
import { StateFolders } from "./checkpoints/state-folders.js";
import { BaseModels, type BaseModelOptions } from "./engine-host/base-models.js";
import { EngineGuard } from "./engine-host/engine-guard.js";
import { SamplerWeights } from "./engine-host/sampler-weights.js";
import type { EngineKit } from "./engine-port/engine-kit.js";
import { Journal } from "./journal/journal.js";
import { Results } from "./journal/results.js";
import type { ServerLimits } from "./prices.js";
import type { Logger } from "./log/logger.js";
import { LoopTurns } from "./loop-turns.js";
import { Metrics } from "./metrics/metrics.js";
import { EventHub } from "./recording/event-hub.js";
import { Recorder, type Capture } from "./recording/recorder.js";
import { FinishedSamples } from "./sampling/finished-samples.js";
import { SampleRequests } from "./sampling/sample-requests.js";
import { Sampler } from "./sampling/sampler.js";
import { SamplingSessions } from "./sampling/sampling-sessions.js";
import { SampleStreams } from "./sampling/streams.js";
import { Scheduler, type Account, type ServerScheduler } from "./scheduler.js";
import { Endings } from "./service/endings.js";
import { Janitor } from "./service/janitor.js";
import { recover } from "./service/recovery.js";
import { Sessions } from "./sessions/sessions.js";
import type { Holder } from "./store/holder-note.js";
import { Store, type Durability } from "./store/store.js";
import type { Clock } from "./time/clock.js";
import { ModelCreation } from "./training/create-model.js";
import { LiveModels } from "./training/live-models.js";
import { createOperations } from "./training/operations/index.js";
import { Snapshots } from "./training/snapshots.js";
import { TrainingRuns } from "./training/training-runs.js";
import { maxWorkers, Workers } from "./workers/workers.js";

/** States that are written at the same time. */
const maxSaving = 2;

/** What the core is made with. */
export interface CoreOptions {
  readonly dataDir: string;
  readonly durability: Durability;
  /** What other processes read about this one. */
  readonly holder: Partial<Holder>;
  readonly models: BaseModelOptions;
  /** Other names of base models and sampler checkpoints. */
  readonly aliases?: Readonly<Record<string, string>> | undefined;
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

/** What the studio, OpenAI's routes and other edges read. */
export interface Context {
  readonly store: Store;
  readonly scheduler: ServerScheduler;
  /** Turns at the event loop for work that may take long. */
  readonly loop: LoopTurns;
  readonly workers: Workers;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  readonly metrics: Metrics;
  readonly recorder: Recorder;
}

/** Everything the server does, without HTTP. */
export interface Core {
  readonly context: Context;
  readonly bases: BaseModels;
  readonly sessions: Sessions;
  readonly checkpoints: Checkpoints;
  readonly creation: ModelCreation;
  readonly runs: TrainingRuns;
  readonly liveModels: LiveModels;
  readonly samplingSessions: SamplingSessions;
  readonly sampler: Sampler;
  /** Samples that are answered on the connection that asked. */
  readonly streams: SampleStreams;
  /** Which samples of a sampling session have finished. */
  readonly finishedSamples: FinishedSamples;
  readonly results: Results;
  readonly endings: Endings;
  /** Finishes or leaves in the journal what runs, and releases the data directory. */
  close(): Promise<void>;
}

/** Opens a data directory and continues what was going on in it. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const { clock, logger, limits, loadKit } = options;
  const store = new Store(options.dataDir, options);
  const metrics = new Metrics();
  const journal = new Journal(store, clock, logger, metrics);
  const hub = new EventHub(clock, store.logs);
  const recorder = new Recorder({ store, clock, logger, limits, hub }, options.recording);
  const scheduler = new Scheduler({
    engine: { capacity: 1 },
    disk: { capacity: maxSaving },
    samples: { capacity: limits.maxRunningSequences, maxShare: 1 / 2 },
    streams: {
      capacity: limits.maxStreams,
      maxWaiting: limits.maxWaitingStreams,
      maxShare: 1 / 2,
    },
    polls: { capacity: limits.maxWaitingPolls },
    loop: { capacity: 1 },
    workers: { capacity: maxWorkers, maxShare: 2 / 3 },
    bodies: { capacity: limits.maxBodiesBytes },
  });
  const context: Context = {
    store,
    scheduler,
    loop: new LoopTurns(scheduler),
    workers: new Workers(scheduler),
    clock,
    logger,
    limits,
    metrics,
    recorder,
  };
  const base = { ...context, journal };

  const folders = new StateFolders(path.join(options.dataDir, "checkpoints"), loadKit);
  const bases = new BaseModels(
    { ...options.models, precisionOf: (runId) => store.models.get(runId)?.precision },
    loadKit,
    logger,
  );
  const snapshots = new Snapshots(base, loadKit);
  const weights = new SamplerWeights(
    bases,
    (checkpoint, modelFolder) => checkpoints.read(checkpoint, modelFolder),
    limits,
  );
  const checkpoints: Checkpoints = new Checkpoints(base, folders, (folder) => weights.drop(folder));
  const operations = createOperations({ ...base, checkpoints, weights, snapshots });
  const liveModels = new LiveModels({ ...base, bases, snapshots, operations });
  const guard = new EngineGuard(logger, async (broken) => {
    liveModels.reset();
    weights.reset();
    await bases.reset(broken);
  });

  const sessions = new Sessions(base);
  const runParts = { ...base, checkpoints, weights, snapshots, liveModels, operations, guard };
  const runs = new TrainingRuns(runParts, sessions);
  const creation = new ModelCreation({ ...base, sessions, bases, checkpoints, runs });
  const { aliases = {} } = options;
  const samplingParts = { ...base, aliases, bases, weights, checkpoints, sessions, guard };
  const samplingSessions = new SamplingSessions(samplingParts);
  const requests = new SampleRequests(samplingParts);
  const sampler = new Sampler({ ...base, requests });
  const streams = new SampleStreams({ ...base, requests });
  const finishedSamples = new FinishedSamples({ ...base, sessions });
  const results = new Results({
    ...base,
    sessions,
    noteFor: (request) => (request.kind === "sample" ? sampler : runs).note(request),
  });

  const parts = { ...base, sessions, runs, liveModels, snapshots, sampler, checkpoints };
  const endings = new Endings(parts);
  const janitor = new Janitor({ ...parts, endings });
  addGauges(context, { sessions, runs, liveModels, sampler, weights });

  try {
    if (options.startsEngine) await bases.start();
    if (options.closesOldSessions) {
      for (const sessionId of sessions.all()) {
        await endings.closeSession(sessionId, "its process ended");
      }
    }
    await recover(parts);
    await recorder.removeLeftovers();
    recorder.moveOldSeries();
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
    checkpoints,
    creation,
    runs,
    liveModels,
    samplingSessions,
    sampler,
    streams,
    finishedSamples,
    results,
    endings,
    async close() {
      janitor.stop();
      journal.releasePolls();
      await Promise.all([
        withinMs(limits.shutdownGraceMs, Promise.all([runs.pause(), sampler.pause()])),
        streams.close(limits.shutdownGraceMs),
      ]);
      journal.seal();
      sampler.abandon();
      await withinMs(limits.shutdownGraceMs, recorder.close());
      const closing = [bases.close(), context.workers.close()];
      await withinMs(limits.shutdownGraceMs, Promise.all([...closing, results.noteFetched()]));
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
  { metrics: { registry }, scheduler }: Context,
  parts: {
    sessions: Sessions;
    runs: TrainingRuns;
    liveModels: LiveModels;
    sampler: Sampler;
    weights: SamplerWeights;
  },
): void {
  const { sessions, runs, liveModels, sampler, weights } = parts;
  registry.gauge("tinker_open_sessions", "Sessions", () => sessions.count);
  registry.gauge("tinker_live_models", "Models in memory", () => liveModels.count);
  registry.gauge("tinker_loaded_samplers", "Sampler weights in memory", () => weights.count);
  registry.gauge("tinker_pending_training", "Waiting or running", () => runs.pendingCount);
  registry.gauge("tinker_pending_samples", "Waiting or running", () => sampler.pendingCount);
  const streams = (): ReturnType<ServerScheduler["load"]> => scheduler.load("streams");
  registry.gauge("tinker_open_streams", "Direct samples that run", () => streams().taken);
  registry.gauge("tinker_waiting_streams", "Direct samples that wait", () => streams().waiting);
  const accounts = (pick: (account: Account) => number) => () =>
    scheduler.accounts().map((account) => ({
      labels: { owner: account.owner, resource: account.resource },
      value: pick(account),
    }));
  const [spent, waiting] = [accounts((one) => one.spent), accounts((one) => one.waiting)];
  registry.gauges("tinker_owner_spent", "Cost of the turns of an owner", spent);
  registry.gauges("tinker_owner_waiting", "Turns that an owner waits for", waiting);
  registry.gauge("tinker_waiting_polls", "Long polls", () => scheduler.load("polls").taken);
}
