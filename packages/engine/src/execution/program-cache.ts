import type { CompiledGraph } from "../graph/compile.js";
import { Program, type ProgramOptions } from "./program.js";

/** Compiles and loads each program when it is first needed, and keeps it. */
export class ProgramCache {
  readonly #options: ProgramOptions;
  readonly #programs = new Map<string, Promise<Program>>();

  constructor(options: ProgramOptions) {
    this.#options = options;
  }

  /** A program by its name, which runs with `maxThreads` threads at most. */
  get(
    key: string,
    compile: () => CompiledGraph | Promise<CompiledGraph>,
    maxThreads = Infinity,
  ): Promise<Program> {
    const existing = this.#programs.get(key);
    if (existing !== undefined) return existing;
    const threads = Math.min(this.#options.threads, maxThreads);
    const made = this.#make(compile, { ...this.#options, threads });
    this.#programs.set(key, made);
    made.catch(() => this.#programs.delete(key));
    return made;
  }

  async #make(
    compile: () => CompiledGraph | Promise<CompiledGraph>,
    options: ProgramOptions,
  ): Promise<Program> {
    return Program.create(await compile(), options);
  }

  async release(): Promise<void> {
    const programs = await Promise.allSettled(this.#programs.values());
    this.#programs.clear();
    for (const result of programs) {
      if (result.status === "fulfilled") await result.value.release();
    }
  }
}
