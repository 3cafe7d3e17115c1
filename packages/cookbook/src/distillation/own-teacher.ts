import path from "node:path";
import { ArgumentError, type ServiceClient } from "tinker-ts";
import type { AdjustContext } from "../rl/index.js";
import { KeptLines } from "../runs/index.js";
import { samplingTeacher, type Teacher } from "./teacher.js";

/** The file of a run's folder that says which weights taught from which step on. */
export const teachersFile = "teachers.jsonl";

/** Who teaches when. */
export interface OwnTeacherOptions {
  /** Where the weights are. */
  readonly service: ServiceClient;
  /** The run's folder. */
  readonly folder: string;
  /** Who teaches at first. */
  readonly first: Teacher;
  /** Steps after which the student as it is then takes the teacher's place; undefined means never. */
  readonly every: number | undefined;
  /** How long the weights of teachers are kept. */
  readonly ttlSeconds?: number | null | undefined;
}

/**
 * A teacher that is replaced by its student from time to time.
 *
 * The weights of every such teacher are saved before the step that it teaches first, and written down, so that a run that
 * goes on in between is taught by the very same one.
 */
export class OwnTeacher {
  readonly #options: OwnTeacherOptions;
  #current: { readonly since: number; readonly teacher: Promise<Teacher> } | undefined;

  constructor(options: OwnTeacherOptions) {
    this.#options = options;
  }

  /** The teacher of a step. */
  async at(context: AdjustContext): Promise<Teacher> {
    const { first, every } = this.#options;
    const since = every === undefined ? 0 : context.step - (context.step % every);
    if (since === 0) return first;
    if (this.#current?.since !== since) {
      this.#current = { since, teacher: this.#open(since, context) };
    }
    return this.#current.teacher;
  }

  async #open(since: number, { step, training, signal }: AdjustContext): Promise<Teacher> {
    const { service, folder, ttlSeconds } = this.#options;
    const kept = await KeptLines.open(path.join(folder, teachersFile));
    let modelPath = kept.lines.findLast(({ batch }) => batch === since)?.["sampler_path"];
    if (step === since) {
      const name = `teacher_${String(since).padStart(6, "0")}`;
      const saved = await training.saveWeightsForSampler(name, { ttlSeconds });
      modelPath = saved.path;
      await kept.append({ batch: since, sampler_path: modelPath });
    }
    if (typeof modelPath !== "string") {
      const file = path.join(folder, teachersFile);
      throw new ArgumentError(
        "teacherSyncEvery",
        `${file} does not say who teaches since ${since}`,
      );
    }
    return samplingTeacher(await service.createSamplingClient({ modelPath, signal }));
  }
}
