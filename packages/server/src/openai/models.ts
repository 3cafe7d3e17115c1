import type { Principal } from "../auth/principal.js";
import { pathOf } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import type { SampleTarget } from "../sampling/sample-target.js";
import { ApiError } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import { invalid, modelNotFound, OpenAiError } from "./openai-error.js";

/** Names of the server's own for base models and checkpoints. */
export type Aliases = Readonly<Record<string, string>>;

/** Maximum number of checkpoints to list, newest first. */
const maxListed = 1000;

/** Similar names in an error, names that are compared for them, and the length of these. */
const [maxSimilar, maxCandidates, maxCompared] = [3, 50, 160];

/** The values of `model`: base models, sampler checkpoints, and aliases of both. */
export class OpenAiModels {
  readonly #core: Core;
  readonly #aliases: Aliases;
  readonly #startedAt: number;

  constructor(core: Core, aliases: Aliases) {
    this.#core = core;
    this.#aliases = aliases;
    this.#startedAt = core.context.clock.now();
  }

  /** The weights of a name; 404 with the nearest names if there are none. */
  resolve(name: string, caller: Principal): SampleTarget {
    const meant = this.#meaningOf(name);
    if (!meant.startsWith("tinker://")) {
      try {
        this.#core.bases.check(meant);
      } catch {
        throw this.#unknown(name, caller);
      }
      return { baseModel: meant, checkpoint: null, sessionId: null, samplerId: null };
    }
    const checkpoint = this.#checkpoint(name, meant, caller);
    if (checkpoint.type !== "sampler") {
      throw invalid(
        "model",
        `${meant} holds training weights; save them for sampling and name that path`,
      );
    }
    const { baseModel } = checkpoint;
    return { baseModel, checkpoint, sessionId: null, samplerId: null };
  }

  /** Everything that the caller can name, aliases and base models first, then checkpoints, newest first. */
  list(caller: Principal): object[] {
    const { store } = this.#core.context;
    const aliases = Object.keys(this.#aliases).flatMap((name) => {
      try {
        return [this.describe(name, caller)];
      } catch {
        // Its target is gone, or belongs to another owner.
        return [];
      }
    });
    const bases = this.#core.bases.names.map((name) => this.describe(name, caller));
    const now = this.#core.context.clock.now();
    const checkpoints = store.checkpoints
      .byOwner(caller.owner, maxListed, 0)
      .filter(({ type, isEphemeral, expiresAt }) => {
        return type === "sampler" && !isEphemeral && (expiresAt === null || expiresAt > now);
      })
      .map((checkpoint) => this.#entry(pathOf(checkpoint), checkpoint.baseModel, checkpoint));
    return [...aliases, ...bases, ...checkpoints];
  }

  /** One model; 404 where there is none. */
  describe(name: string, caller: Principal): object {
    const { baseModel, checkpoint } = this.resolve(name, caller);
    const entry = this.#entry(name, baseModel, checkpoint);
    return Object.hasOwn(this.#aliases, name) ? { ...entry, root: this.#meaningOf(name) } : entry;
  }

  #entry(id: string, baseModel: string, checkpoint: CheckpointRecord | null): object {
    return {
      id,
      object: "model",
      created: Math.floor((checkpoint?.createdAt ?? this.#startedAt) / 1000),
      owned_by: checkpoint?.owner ?? "tinker-ts",
      parent: checkpoint === null ? null : baseModel,
      max_model_len: this.#core.bases.known(baseModel)?.contextLength ?? null,
    };
  }

  #meaningOf(name: string): string {
    return (Object.hasOwn(this.#aliases, name) ? this.#aliases[name] : undefined) ?? name;
  }

  #checkpoint(name: string, path: string, caller: Principal): CheckpointRecord {
    try {
      // An alias of the configuration gives callers access to its target.
      const isAlias = name !== path;
      return isAlias
        ? this.#core.checkpoints.existing(path)
        : this.#core.checkpoints.readable(path, [caller.owner]);
    } catch (error) {
      if (error instanceof ApiError) throw this.#unknown(name, caller);
      throw error;
    }
  }

  #unknown(name: string, caller: Principal): OpenAiError {
    const shown = name.length > maxCompared ? `${name.slice(0, maxCompared)}…` : name;
    const problem = `the model ${JSON.stringify(shown)} does not exist or is not yours`;
    // Comparing costs the product of the lengths; no name that could be meant is that long.
    if (name.length > maxCompared) return modelNotFound(problem);
    const known = [
      ...Object.keys(this.#aliases),
      ...this.#core.bases.names,
      ...this.#core.context.store.checkpoints
        .byOwner(caller.owner, maxCandidates, 0)
        .filter(({ type, isEphemeral }) => type === "sampler" && !isEphemeral)
        .map((checkpoint) => pathOf(checkpoint)),
    ];
    const nearest = known
      .slice(0, maxCandidates)
      .filter((candidate) => candidate.length <= maxCompared)
      .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
      .toSorted((a, b) => a.distance - b.distance)
      .slice(0, maxSimilar)
      .map(({ candidate }) => candidate);
    const hint = nearest.length === 0 ? "none is set up" : `the nearest are ${nearest.join(", ")}`;
    return modelNotFound(`${problem}; ${hint}`);
  }
}

/** How many characters differ between two names. */
function editDistance(a: string, b: string): number {
  let before = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = before[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, before[j]! + 1, row[j - 1]! + 1));
    }
    before = row;
  }
  return before[b.length]!;
}
