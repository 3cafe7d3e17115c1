import { ModelInput } from "tinker-ts";
import type { Policy } from "./policy.js";
import { untilAborted } from "../evaluation/index.js";
import { checkReward } from "./reward.js";
import { mixSeeds } from "./seeds.js";
import type {
  Environment,
  Numbers,
  Observation,
  Overflow,
  RolloutLimits,
  StepResult,
  Trajectory,
  Transition,
} from "./types.js";

/** The state of an episode. */
export interface RolloutState {
  /** The turns that were played. */
  readonly transitions: readonly Transition[];
  /** Positions of the prompt that comes next, or came last. */
  readonly observedTokens: number;
  /** Tokens that were sampled. */
  readonly sampledTokens: number;
  /** Turns that were cut off and after which the episode went on. */
  readonly truncations: number;
  /** Milliseconds since the episode began. */
  readonly elapsedMs: number;
}

/** Callbacks during an episode; an error that one throws fails the episode. */
export interface RolloutHooks {
  /** Called before every turn; may return another prompt, which then counts. */
  onTurn?(
    observation: Observation,
    state: RolloutState,
  ): Observation | undefined | Promise<Observation | undefined>;
  /**
   * Called when a limit or the environment ends the episode: returns the reason, another one, or null to go on. A limit
   * is then lifted for one turn; an environment that is over stays over. The limit on time is not asked about.
   */
  onStop?(reason: string, state: RolloutState): string | null | Promise<string | null>;
  /** Called with what was played before it is returned, for instance to keep it; `byEnvironment` where that ended and graded it. */
  onEnd?(trajectory: Trajectory, end: { readonly byEnvironment: boolean }): void | Promise<void>;
}

/** Options of an episode. */
export interface RolloutOptions {
  /** Bounds of the episode. @default the environment's own */
  readonly limits?: RolloutLimits | undefined;
  /** Callbacks during the episode. */
  readonly hooks?: RolloutHooks | undefined;
  /** Makes the episode repeatable as far as its environment is. */
  readonly seed?: number | undefined;
  /** Aborts the episode. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plays one episode to its end or to one of its limits, and closes the environment.
 *
 * A limit ends the episode with its name as the reason and keeps what was played. A failure of environment or
 * policy, an abort and a turn that takes too long reject.
 */
export async function rollout(
  policy: Policy,
  environment: Environment,
  { limits = environment.limits ?? {}, hooks = {}, seed, signal: outer }: RolloutOptions = {},
): Promise<Trajectory> {
  const timeout =
    limits.timeoutMs === undefined ? undefined : AbortSignal.timeout(limits.timeoutMs);
  const signal = AbortSignal.any([outer, timeout].filter((one) => one !== undefined));
  const episode = new Episode(limits);
  const end = async (trajectory: Trajectory, byEnvironment: boolean): Promise<Trajectory> => {
    await hooks.onEnd?.(trajectory, { byEnvironment });
    return trajectory;
  };
  let failure: unknown;
  try {
    outer?.throwIfAborted();
    const beginning = await untilAborted(signal, environment.start({ signal }));
    if ("overflow" in beginning) return await end(overflowed(beginning), true);
    let observation: Observation | undefined = beginning;
    while (observation) {
      observation = (await hooks.onTurn?.(observation, episode.state)) ?? observation;
      const input = ModelInput.from(observation.input);
      episode.read(input);
      const found = episode.roomFor(input);
      const stop = typeof found === "string" ? await stopBy(hooks, found, episode.state) : null;
      if (stop !== null) return await end(episode.endByLimit(stop), false);
      const room = typeof found === "string" ? undefined : found;
      const action = await sampleWithin(limits.turnTimeoutMs, signal, (turnSignal) =>
        policy({
          input,
          stop: observation?.stop,
          maxTokens: room,
          seed: seed === undefined ? undefined : mixSeeds(seed, episode.turns),
          signal: turnSignal,
        }),
      );
      const result: StepResult = await untilAborted(signal, environment.step(action, { signal }));
      episode.add(toTransition(input, action, result), result.next !== undefined);
      if (!result.next) {
        const reason = result.stopReason ?? "completed";
        const named = (await stopBy(hooks, reason, episode.state)) ?? reason;
        return await end(episode.end(named), true);
      }
      observation = result.next;
    }
    return await end(episode.end("completed"), true);
  } catch (error) {
    if (timeout?.aborted && !outer?.aborted) {
      return await end(episode.endByLimit("rollout_timeout"), false);
    }
    failure = error;
    throw error;
  } finally {
    await closeQuietly(environment, failure);
  }
}

/** What a hook makes of a reason to stop; without one it stands. */
async function stopBy(
  hooks: RolloutHooks,
  reason: string,
  state: RolloutState,
): Promise<string | null> {
  return hooks.onStop ? hooks.onStop(reason, state) : reason;
}

/** Closes what an episode or a group held; its failure says nothing about what was played. */
export async function closeQuietly(
  closable: { close?(failure?: unknown): void | Promise<void> },
  failure?: unknown,
): Promise<void> {
  try {
    await closable.close?.(failure);
  } catch {
    // The result is no longer needed.
  }
}

/** What has been played, and how much of the limits is left. */
class Episode {
  readonly #limits: RolloutLimits;
  readonly #transitions: Transition[] = [];
  readonly #startedAt = performance.now();
  #observed = ModelInput.empty();
  #sampled = 0;
  #truncations = 0;

  constructor(limits: RolloutLimits) {
    this.#limits = limits;
  }

  get turns(): number {
    return this.#transitions.length;
  }

  get state(): RolloutState {
    return {
      transitions: [...this.#transitions],
      observedTokens: this.#observed.length,
      sampledTokens: this.#sampled,
      truncations: this.#truncations,
      elapsedMs: performance.now() - this.#startedAt,
    };
  }

  /** Takes the prompt of the next turn. */
  read(input: ModelInput): void {
    this.#observed = input;
  }

  /** Tokens that the next turn may have (undefined: any number), or the limit that has been reached. */
  roomFor(input: ModelInput): number | string | undefined {
    const { maxTurns, maxTrajectoryTokens, maxSampledTokens, maxTurnTokens } = this.#limits;
    if (maxTurns !== undefined && this.turns >= maxTurns) return "max_turns";
    const inContext =
      maxTrajectoryTokens === undefined ? undefined : maxTrajectoryTokens - input.length;
    const inBudget = maxSampledTokens === undefined ? undefined : maxSampledTokens - this.#sampled;
    // One token cannot hold a useful turn.
    if (inContext !== undefined && inContext <= 1) return "max_tokens";
    if (inBudget !== undefined && inBudget <= 1) return "max_sampled_tokens";
    const bounds = [maxTurnTokens, inContext, inBudget].filter((bound) => bound !== undefined);
    return bounds.length === 0 ? undefined : Math.min(...bounds);
  }

  add(transition: Transition, goesOn: boolean): void {
    this.#transitions.push(transition);
    this.#sampled += transition.action.tokens.length;
    if (goesOn && transition.action.stopReason === "length") this.#truncations++;
  }

  end(stopReason: string): Trajectory {
    const counts =
      this.#truncations === 0 ? {} : { num_truncations_max_turn_tokens: this.#truncations };
    return { transitions: withEnd(this.#transitions, stopReason, counts), stopReason };
  }

  /** The end before a turn that was not played. */
  endByLimit(stopReason: string): Trajectory {
    return { ...this.end(stopReason), finalObservation: this.#observed };
  }
}

function toTransition(
  observation: ModelInput,
  action: Transition["action"],
  { reward, metrics = {}, logs = {}, masked = false }: StepResult,
): Transition {
  checkReward("reward", reward);
  return { observation, action, reward, metrics, logs, masked };
}

function overflowed({ reward, metrics, stopReason = "context_overflow" }: Overflow): Trajectory {
  const action = { tokens: new Int32Array(), logprobs: new Float32Array(), stopReason: "overflow" };
  const transition = toTransition(ModelInput.empty(), action, { reward, metrics });
  return { transitions: withEnd([transition], stopReason), stopReason };
}

/** The last turn also has the reason for the end. */
function withEnd(
  transitions: readonly Transition[],
  stopReason: string,
  counts: Numbers = {},
): readonly Transition[] {
  const last = transitions.at(-1);
  if (!last) return transitions;
  const metrics = { ...last.metrics, [`stop/${stopReason}`]: 1, ...counts };
  return [...transitions.slice(0, -1), { ...last, metrics }];
}

async function sampleWithin<T>(
  timeoutMs: number | undefined,
  signal: AbortSignal,
  sample: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (timeoutMs === undefined) return untilAborted(signal, sample(signal));
  const both = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return untilAborted(both, sample(both));
}
