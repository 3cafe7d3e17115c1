import type { StudioCheckpoint, WireValue } from "tinker-ts/wire";
import type { LogRecord } from "../store/logs-table.js";
import { Lookout } from "./lookout.js";

/** Another server whose runs are shown here. */
export interface RemoteServer {
  /** Its address, to be shown. */
  readonly baseUrl: string;
  /** Asks it; `service.createRestClient()` does. */
  readonly rest: {
    listTrainingRuns(page: PageOptions): Promise<WireValue<"TrainingRunsResponse">>;
    listUserCheckpoints(page: PageOptions): Promise<WireValue<"CheckpointsListResponse">>;
  };
}

interface PageOptions {
  readonly limit: number;
  readonly offset: number;
  readonly timeoutMs: number;
}

interface RemoteRun {
  readonly id: string;
  readonly name: string;
  readonly config: unknown;
  readonly changedAt: number;
  readonly isBroken: boolean;
}

const prefix = "remote-";
const lookMs = 10_000;
const patienceMs = 3000;
const askMs = 20_000;
const pageSize = 200;
const maxRuns = 2000;
const runningMs = 120_000;

/**
 * Runs and checkpoints of a server that has no studio, from its REST API. It tells nothing of steps, so there are no
 * curves; those are in the folders that loops have written (`--logs`).
 */
export class RemoteRuns {
  readonly #server: RemoteServer | null;
  #runs = new Map<string, RemoteRun>();
  #checkpoints: readonly StudioCheckpoint[] = [];
  readonly #lookout: Lookout;
  #changed = new Set<string>();
  /** Why the last look has failed; null when it has not. */
  problem: string | null = null;

  constructor(server: RemoteServer | null) {
    this.#server = server;
    this.#lookout = new Lookout(
      () =>
        this.#lookNow().then(
          () => void (this.problem = null),
          (error: unknown) => {
            this.problem = error instanceof Error ? error.message : "no answer";
          },
        ),
      { everyMs: lookMs, patienceMs },
    );
  }

  /** Whether an id is one of another server. */
  static isRemote(id: string): boolean {
    return id.startsWith(prefix);
  }

  /** Looks for what is new; waits a moment, then goes on in the background. */
  async look(): Promise<void> {
    if (this.#server) await this.#lookout.look();
  }

  /** All runs, as records of an owner. */
  records(owner: string): LogRecord[] {
    return [...this.#runs.values()].map((run) => toRecord(run, owner));
  }

  record(owner: string, id: string): LogRecord | undefined {
    const run = this.#runs.get(id);
    return run && toRecord(run, owner);
  }

  /** Runs that are new or have changed since this was asked the last time. */
  takeChanged(owner: string): LogRecord[] {
    const changed = [...this.#changed].flatMap((id) => this.record(owner, id) ?? []);
    this.#changed.clear();
    return changed;
  }

  /** Checkpoints of a run, or all. */
  checkpoints(id: string | null): readonly StudioCheckpoint[] {
    return id === null ? this.#checkpoints : this.#checkpoints.filter(({ run }) => run === id);
  }

  async #lookNow(): Promise<void> {
    const { rest } = this.#server!;
    const runs = new Map<string, RemoteRun>();
    for (let offset = 0; offset < maxRuns; offset += pageSize) {
      const { trainingRuns } = await rest.listTrainingRuns(pageAt(offset));
      for (const run of trainingRuns) {
        const { trainingRunId, baseModel, loraRank, userMetadata, lastRequestTime } = run;
        const id = prefix + trainingRunId;
        const { name, run_name: runName = name } = userMetadata ?? {};
        runs.set(id, {
          id,
          name: runName || `${baseModel.split("/").at(-1)} ${trainingRunId.slice(0, 8)}`,
          config: { base_model: baseModel, lora_rank: loraRank, user_metadata: userMetadata },
          changedAt: lastRequestTime.getTime(),
          isBroken: run.corrupted,
        });
      }
      if (trainingRuns.length < pageSize) break;
    }
    for (const [id, { changedAt }] of runs) {
      if (this.#runs.get(id)?.changedAt !== changedAt) this.#changed.add(id);
    }
    this.#runs = runs;
    const checkpoints: StudioCheckpoint[] = [];
    for (let offset = 0; offset < maxRuns; offset += pageSize) {
      const page = await rest.listUserCheckpoints(pageAt(offset));
      checkpoints.push(...page.checkpoints.map((one) => toCheckpoint(one, runs)));
      if (page.checkpoints.length < pageSize) break;
    }
    this.#checkpoints = checkpoints;
  }
}

function pageAt(offset: number): PageOptions {
  return { limit: pageSize, offset, timeoutMs: askMs };
}

function toRecord({ id, name, config, changedAt, isBroken }: RemoteRun, owner: string): LogRecord {
  const isFresh = Date.now() - changedAt < runningMs;
  return {
    logId: id,
    owner,
    source: "remote",
    kind: "unknown",
    name,
    group: null,
    tags: [],
    config: JSON.stringify(config),
    folder: null,
    status: isBroken ? "failed" : isFresh ? "running" : "idle",
    statusReason: isBroken ? "its server says that it is damaged" : null,
    attempt: 1,
    steps: 0,
    dropped: 0,
    isPinned: false,
    archivedAt: null,
    pausedAt: null,
    controls: null,
    createdAt: changedAt,
    updatedAt: changedAt,
  };
}

function toCheckpoint(
  one: {
    readonly tinkerPath: string;
    readonly checkpointType: string;
    readonly time: Date;
    readonly sizeBytes?: number | null;
    readonly public: boolean;
    readonly expiresAt?: Date | null;
  },
  runs: ReadonlyMap<string, RemoteRun>,
): StudioCheckpoint {
  const [model = "", , ...name] = one.tinkerPath.replace("tinker://", "").split("/");
  const run = runs.get(prefix + model);
  const config = (run?.config ?? {}) as { base_model?: string; lora_rank?: number | null };
  return {
    path: one.tinkerPath,
    model,
    run: prefix + model,
    runName: run?.name ?? model,
    name: name.join("/"),
    kind: one.checkpointType === "sampler" ? "sampler" : "training",
    baseModel: config.base_model ?? "",
    rank: config.lora_rank ?? 0,
    step: null,
    nll: null,
    sizeBytes: one.sizeBytes ?? 0,
    isPublic: one.public,
    createdAt: one.time.getTime(),
    expiresAt: one.expiresAt?.getTime() ?? null,
    parent: null,
    usedBy: [],
    isRemote: true,
  };
}
