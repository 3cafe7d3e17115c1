import { layerWindows } from "@tinker-ts/hub/weights";
import { EngineError } from "../errors.js";
import { BufferPool } from "../execution/buffer-pool.js";
import { cachedHeadWidth } from "../model/cached-attention.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { stateLengths } from "../model/mixers/recurrence.js";
import { usualLength } from "../model/rotary-tables.js";
import type { FairTurns } from "../util/turns.js";
import { AdapterSet, type FrozenAdapter } from "./adapter-set.js";
import { DecodeGroup, groupLimit, type DrawnToken } from "./decode-group.js";
import { Decoder } from "./decoder.js";
import type { KvMemory } from "./kv-memory.js";
import { kvBytesPerToken, stateBytes, type KvRows, type KvShape } from "./kv-rows.js";
import { PrefixCache } from "./prefix-cache.js";
import { PromptPass } from "./prompt-pass.js";
import { type SampleCall, SampleJob, type SampleResult, type Sequence } from "./sequence.js";
import type { CheckedSampleOptions } from "./request.js";

/** Limits of a sampler. */
export interface SamplerOptions {
  /** Memory for keys and values of running sequences. */
  readonly kvBytes: number;
  /** Memory for keys and values of remembered prompts. */
  readonly prefixBytes: number;
  /** Memory for logits and probabilities at a time. @default enough for every row of a step */
  readonly tableBytes?: number;
  /** Sequences that are decoded together at most. */
  readonly maxRows: number;
}

/** Cache memory that is kept for later groups, regardless of past use. */
const freelyKeptBytes = 256 << 20;

/** Joined adapters that are kept for reuse. */
const keptAdapterSets = 4;

/** What a scope has used, and what comes first where it has prompts and running sequences. */
interface ScopeState {
  usedMs: number;
  promptsFirst: boolean;
}

/** What can be done next for a scope. */
interface Steps {
  readonly scope: ScopeState;
  readonly read: (() => Promise<void>) | undefined;
  readonly group: DecodeGroup | undefined;
}

/** A prompt of which nothing is asked but what follows it. */
const unscored = {
  promptLogprobs: false,
  topkPromptLogprobs: 0,
  promptLogprobsLastN: null,
  promptTargets: null,
  promptAlternatives: 0,
} as const;

/**
 * Generates samples for many requests at once.
 *
 * - Requests are queued. A prompt is read block by block; then its samples join the sequences that are
 *   being decoded, as far as memory allows, and the others follow as room becomes free.
 * - Every step either reads a block of a prompt or gives one token to each sequence of a group; while
 *   there is both, they alternate, so that neither new requests nor running ones starve.
 * - Scopes share the time of the steps: a large request makes a small one of another scope wait for single steps.
 * - Where a sequence's length decides how it rotates, one that grows beyond the usual length is read again
 *   from its start, like a prompt, before it continues.
 * - A request that was cancelled is taken out between two steps.
 */
export class Sampler {
  readonly #model: ModelRuntime;
  readonly #options: SamplerOptions;
  readonly #turns: FairTurns;
  readonly #decoder: Decoder;
  readonly #prefixes: PrefixCache;
  readonly #shape: KvShape;
  /** Keeps the memory of ended groups for later ones. */
  readonly #memory: KvMemory;
  readonly #adapterSets = new Map<string, AdapterSet>();
  readonly #owners = new Map<Sequence, SampleJob>();
  /** Running sequences that are being read again from the start. */
  readonly #readAgain = new Map<Sequence, PromptPass>();
  readonly #usualLength: number;
  #jobs: SampleJob[] = [];
  #groups: DecodeGroup[] = [];
  #loop: Promise<void> | undefined;
  /** Scopes with requests, and the time that their steps have taken. */
  readonly #scopes = new Map<string, ScopeState>();

  constructor(model: ModelRuntime, options: SamplerOptions, turns: FairTurns) {
    const { kvHeads } = model.config;
    this.#model = model;
    this.#options = options;
    this.#turns = turns;
    const windows = layerWindows(model.config);
    const states = stateLengths(model.config);
    this.#shape = {
      layers: windows.length,
      kvHeads,
      headWidth: cachedHeadWidth(model.config),
      windows,
      ...(states.length === 0 ? {} : { states }),
    };
    this.#decoder = new Decoder(model, options);
    this.#memory =
      this.#decoder.memory ?? new BufferPool(Math.min(options.kvBytes, freelyKeptBytes));
    this.#usualLength = usualLength(model.config);
    this.#prefixes = new PrefixCache(this.#shape, options.prefixBytes, this.#usualLength);
  }

  /** Runs a request to its end. */
  async sample(call: SampleCall): Promise<SampleResult> {
    call.signal?.throwIfAborted();
    const job = new SampleJob(call, this.#reservedBytes(call));
    this.#jobs.push(job);
    this.#loop ??= this.#run();
    return job.result;
  }

  /** Fails all requests and waits until nothing runs any more. */
  async close(reason: unknown): Promise<void> {
    for (const job of this.#jobs) job.fail(reason);
    await this.idle();
  }

  /** Resolves when nothing runs and all memory has been returned. */
  async idle(): Promise<void> {
    await this.#loop;
  }

  /** Drops the caches of an adapter that will not be used again. */
  forget(adapterId: string): void {
    this.#prefixes.drop(adapterId);
    for (const key of this.#adapterSets.keys()) {
      if (key.split(" ").includes(adapterId)) this.#dropSet(key);
    }
  }

  async #run(): Promise<void> {
    const turn = this.#turns.enter("sample");
    try {
      for (;;) {
        this.#removeSettled();
        this.#startSamples();
        const next = this.#nextSteps();
        if (next === undefined) {
          if (this.#decoder.isSettled) break;
          // Requests may arrive meanwhile. This is not awaited; a failure is reported to the next request.
          await this.#decoder.settle().catch(() => {});
          continue;
        }
        await turn.take();
        const { scope, read, group } = next;
        const startedAt = performance.now();
        if (read !== undefined && (group === undefined || scope.promptsFirst)) {
          await read();
        } else if (group !== undefined) {
          await this.#decode(group);
        }
        scope.promptsFirst = !scope.promptsFirst;
        scope.usedMs += performance.now() - startedAt;
      }
    } finally {
      this.#loop = undefined;
      turn.leave();
    }
  }

  /** What the scope can do next that has used the least time of those with something to do. */
  #nextSteps(): Steps | undefined {
    const present = new Set(this.#jobs.map(scopeOf));
    for (const scope of this.#scopes.keys()) if (!present.has(scope)) this.#scopes.delete(scope);
    // Who was away starts level with the others.
    const least = Math.min(...[...this.#scopes.values()].map(({ usedMs }) => usedMs));
    for (const scope of present) {
      if (this.#scopes.has(scope)) continue;
      const usedMs = Number.isFinite(least) ? least : 0;
      this.#scopes.set(scope, { usedMs, promptsFirst: true });
    }
    const inOrder = [...this.#scopes].toSorted(([, a], [, b]) => a.usedMs - b.usedMs);
    for (const [name, scope] of inOrder) {
      const read = this.#nextReading(name);
      const group = this.#groups.find((one) => one.scope === name);
      if (read !== undefined || group !== undefined) return { scope, read, group };
    }
    return undefined;
  }

  /** Reads a block of tokens: of a running sequence, if there is one to be read again, or of a prompt. */
  #nextReading(scope: string): (() => Promise<void>) | undefined {
    const again = [...this.#readAgain].find(([{ options }]) => options.cacheScope === scope);
    if (again !== undefined) return () => this.#continueReading(...again);
    const prompt = this.#nextPrompt(scope);
    return prompt && (() => this.#readPrompt(prompt));
  }

  async #continueReading(sequence: Sequence, pass: PromptPass): Promise<void> {
    try {
      await pass.step();
      if (pass.next === undefined) return;
      this.#readAgain.delete(sequence);
      const drawn = sequence.advance(pass.next);
      if (drawn !== undefined) this.#report([{ sequence, ...drawn }]);
      if (sequence.ended) this.#end(sequence);
      else this.#place(sequence, pass.row, 0);
      pass.release();
    } catch (error) {
      this.#owners.get(sequence)?.fail(error);
    }
  }

  async #readPrompt(job: SampleJob): Promise<void> {
    try {
      if (job.prompt === undefined) {
        job.begin(this.#newPrompt(job.call.options, job.call.adapter));
      }
      await job.prompt?.step();
    } catch (error) {
      job.fail(error);
    }
  }

  async #decode(group: DecodeGroup): Promise<void> {
    // Groups take turns.
    this.#groups = [...this.#groups.filter((other) => other !== group), group];
    try {
      const drawn = await group.step();
      this.#report(drawn);
      const ended = group.sequences.filter((sequence) => sequence.ended);
      for (const sequence of ended) this.#end(sequence, group);
      group.moveOversized((sequence, source, row) => this.#place(sequence, source, row));
    } catch (error) {
      for (const sequence of group.sequences) this.#owners.get(sequence)?.fail(error);
    }
  }

  #report(drawn: readonly DrawnToken[]): void {
    const byJob = new Map<SampleJob, DrawnToken[]>();
    for (const token of drawn) {
      const job = this.#owners.get(token.sequence);
      if (job === undefined || job.settled) continue;
      const tokens = byJob.get(job);
      if (tokens === undefined) byJob.set(job, [token]);
      else tokens.push(token);
    }
    for (const [job, tokens] of byJob) job.report(tokens);
  }

  #newPrompt(options: CheckedSampleOptions, adapter: FrozenAdapter): PromptPass {
    return new PromptPass(
      options,
      adapter,
      this.#adapterSet([adapter]),
      this.#decoder,
      this.#prefixes,
      this.#shape,
      this.#decoder.memory,
    );
  }

  /** The next request of a scope with an unread prompt, if there is memory for it. */
  #nextPrompt(scope: string): SampleJob | undefined {
    const job = this.#jobs.find((one) => scopeOf(one) === scope && one.prompt?.next === undefined);
    if (job === undefined || job.prompt !== undefined) return job;
    const alone = this.#jobs[0] === job && this.#owners.size === 0;
    return alone || this.#fits(job.reservedBytes) ? job : undefined;
  }

  /** Starts waiting samples of requests after their prompt, in order of arrival. */
  #startSamples(): void {
    for (const job of this.#jobs) {
      while (job.prompt?.next !== undefined && job.waitingSamples > 0 && !job.settled) {
        if (this.#owners.size > 0 && !this.#fits(job.reservedBytes)) return;
        const sequence = job.startSample(this.#model.config.contextLength);
        if (sequence === undefined) break;
        this.#owners.set(sequence, job);
        if (sequence.ended) this.#end(sequence);
        else this.#place(sequence, job.prompt.row, 0, this.#followers(job));
      }
    }
  }

  /** Samples of a request that can be started right after the one just started. */
  #followers({ waitingSamples, reservedBytes }: SampleJob): number {
    const room = Math.floor(this.#freeBytes() / reservedBytes);
    return Math.max(0, Math.min(waitingSamples, room));
  }

  #place(sequence: Sequence, source: KvRows, row: number, followers = 0): void {
    const tokens = source.length(row) + 1;
    if (tokens === this.#usualLength + 1) {
      const options = { ...sequence.options, ...unscored, prompt: sequence.tokens };
      this.#readAgain.set(sequence, this.#newPrompt(options, sequence.adapter));
      return;
    }
    const scope = sequence.options.cacheScope;
    let group = this.#groups.find(
      (candidate) => candidate.scope === scope && candidate.accepts(sequence, tokens),
    );
    if (group === undefined) {
      group = new DecodeGroup(
        scope,
        tokens,
        (length) => groupLimit(length, this.#usualLength),
        this.#options.maxRows,
        this.#shape,
        this.#memory,
        this.#decoder,
        (adapters) => this.#adapterSet(adapters),
      );
      this.#groups.push(group);
    }
    group.add(sequence, source, row, followers);
  }

  #end(sequence: Sequence, group?: DecodeGroup): void {
    group?.remove(sequence);
    this.#owners.get(sequence)?.end(sequence);
    this.#owners.delete(sequence);
  }

  /** Removes finished requests and empty groups. */
  #removeSettled(): void {
    for (const group of this.#groups) {
      const over = group.sequences.filter((one) => this.#owners.get(one)?.settled !== false);
      for (const sequence of over) {
        group.remove(sequence);
        this.#owners.delete(sequence);
      }
    }
    for (const [sequence, pass] of this.#readAgain) {
      if (this.#owners.get(sequence)?.settled === false) continue;
      pass.release();
      this.#readAgain.delete(sequence);
      this.#owners.delete(sequence);
    }
    for (const group of this.#groups) if (group.sequences.length === 0) group.release();
    this.#groups = this.#groups.filter(({ sequences }) => sequences.length > 0);
    for (const { settled, prompt } of this.#jobs) if (settled) prompt?.release();
    this.#jobs = this.#jobs.filter(({ settled }) => !settled);
  }

  #adapterSet(adapters: readonly FrozenAdapter[]): AdapterSet {
    const key = adapters.map(({ id }) => id).join(" ");
    const set = this.#adapterSets.get(key) ?? new AdapterSet(this.#model.config, adapters);
    // Most recently used last.
    this.#adapterSets.delete(key);
    this.#adapterSets.set(key, set);
    const [oldest] = this.#adapterSets.keys();
    if (this.#adapterSets.size > keptAdapterSets && oldest !== undefined) {
      this.#dropSet(oldest);
    }
    return set;
  }

  #dropSet(key: string): void {
    const set = this.#adapterSets.get(key);
    this.#adapterSets.delete(key);
    if (set !== undefined) this.#decoder.forget(set);
    if (!this.#decoder.isSettled) this.#loop ??= this.#run();
  }

  #reservedBytes({ options }: SampleCall): number {
    const { contextLength } = this.#model.config;
    const longest = Math.min(options.prompt.length + options.maxTokens, contextLength);
    const tokens = groupLimit(longest, this.#usualLength);
    const bytes = tokens * kvBytesPerToken(this.#shape) + stateBytes(this.#shape);
    if (bytes <= this.#options.kvBytes) return bytes;
    const sizeMb = Math.ceil(bytes / 2 ** 20);
    throw new EngineError(
      "not_enough_memory",
      `a sample of up to ${longest} tokens needs ${sizeMb} MB of cache, more than the engine may ` +
        "use; lower maxTokens, shorten the prompt, or raise memoryBytes.",
    );
  }

  #fits(bytes: number): boolean {
    return bytes <= this.#freeBytes();
  }

  #freeBytes(): number {
    let free = this.#options.kvBytes;
    for (const job of this.#owners.values()) free -= job.reservedBytes;
    return free;
  }
}

function scopeOf({ call }: SampleJob): string {
  return call.options.cacheScope;
}
