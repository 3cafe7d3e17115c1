import type { NamedTensors, OptimizerState } from "@tinker-ts/hub/weights";
import { EngineError } from "../errors.js";
import type { ProgramCache } from "../execution/program.js";
import { addInto } from "../util/arrays.js";
import { adamState, adamStep, type AdamOptions, type AdamReport, type AdamState } from "./adam.js";
import type { ParameterLayout } from "../model/parameter-layout.js";

/** Parameters and optionally the optimizer, as they are exported and imported. */
export interface ParameterExport {
  readonly tensors: NamedTensors;
  readonly optimizer?: OptimizerState;
}

/**
 * The trained parameters of one adapter with their gradient and optimizer.
 *
 * - Gradients of finished calls are summed until a step consumes them; a call that fails or is cancelled
 *   adds nothing, because it works on an array of its own.
 * - After a step that failed halfway every use fails with the error of that step, until `import`.
 * - `freeze` hands out the current values without copying. The next change then goes to a new array, so
 *   the frozen array never changes.
 */
export class ParameterState {
  readonly layout: ParameterLayout;
  #values: Float32Array;
  #frozen = false;
  #gradient: Float32Array | undefined;
  #spare: Float32Array | undefined;
  #adam: AdamState | undefined;
  #version = 0;
  /** Set by a step that changed the values in part; only an import makes them usable again. */
  #failure: EngineError | undefined;

  constructor(layout: ParameterLayout, values: Float32Array) {
    this.layout = layout;
    this.#values = values;
  }

  get values(): Float32Array {
    if (this.#failure) throw this.#failure;
    return this.#values;
  }

  /** Changes whenever the values do. */
  get version(): number {
    return this.#version;
  }

  /** Freezes and returns the current values. */
  freeze(): Float32Array {
    const { values } = this;
    this.#frozen = true;
    return values;
  }

  /** An array for the gradient of one call. */
  borrowGradient(): Float32Array {
    const array = this.#spare ?? new Float32Array(this.layout.length);
    this.#spare = undefined;
    return array;
  }

  /** Adds the gradient of a successful call. */
  addGradient(array: Float32Array): void {
    if (this.#gradient === undefined) {
      this.#gradient = array;
    } else {
      addInto(this.#gradient, array);
      this.#spare = array;
    }
  }

  /** Takes back the array of a failed call. */
  returnGradient(array: Float32Array): void {
    this.#spare = array;
  }

  /**
   * One optimizer step with the summed gradient, which is then cleared. A gradient that is not finite is
   * refused and dropped; any other refusal leaves everything as it was.
   */
  async step(programs: ProgramCache, options: Required<AdamOptions>): Promise<AdamReport> {
    this.#thaw();
    const { values } = this;
    const gradient = this.#gradient ?? this.borrowGradient().fill(0);
    this.#version += 1;
    try {
      const report = await adamStep(programs, values, gradient, this.#optimizer(), options);
      this.#dropGradient(gradient);
      return report;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.code === "gradient_not_finite") this.#dropGradient(gradient);
      if (error.code === "adapter_broken") this.#failure = error;
      throw error;
    }
  }

  /** The summed gradient, zero when there is none. */
  exportGradient(): NamedTensors {
    return this.#named(this.#gradient ?? new Float32Array(this.layout.length));
  }

  export(withOptimizer: boolean): ParameterExport {
    const tensors = this.#named(this.values);
    if (!withOptimizer) return { tensors };
    const { step, firstMoment, secondMoment } = this.#optimizer();
    const firstMoments = this.#named(firstMoment);
    const secondMoments = this.#named(secondMoment);
    return { tensors, optimizer: { step, firstMoments, secondMoments } };
  }

  /** The tensors, with zeros in place of missing ones. */
  completed(tensors: NamedTensors): NamedTensors {
    const zeros = this.layout.tensors
      .filter(({ name }) => !tensors.has(name))
      .map(({ name, shape }) => [name, { shape, data: new Float32Array(sizeOf(shape)) }] as const);
    return new Map([...tensors, ...zeros]);
  }

  /** Replaces the values, and the optimizer if requested; drops gradients. */
  import(state: ParameterExport, withOptimizer: boolean): void {
    const values = this.#flat(state.tensors, "tensors");
    if (withOptimizer && state.optimizer === undefined) {
      throw new EngineError(
        "no_optimizer_state",
        "the state has no optimizer; export it with one, or import without.",
      );
    }
    this.#adam =
      withOptimizer && state.optimizer !== undefined
        ? adamState(values, {
            step: state.optimizer.step,
            firstMoment: this.#flat(state.optimizer.firstMoments, "optimizer.firstMoments"),
            secondMoment: this.#flat(state.optimizer.secondMoments, "optimizer.secondMoments"),
          })
        : undefined;
    this.#values = values;
    this.#failure = undefined;
    this.#frozen = false;
    this.#gradient = undefined;
    this.#version += 1;
  }

  #optimizer(): AdamState {
    this.#adam ??= adamState(this.#values, {
      step: 0,
      firstMoment: new Float32Array(this.layout.length),
      secondMoment: new Float32Array(this.layout.length),
    });
    return this.#adam;
  }

  #dropGradient(array: Float32Array): void {
    this.#gradient = undefined;
    this.#spare = array;
  }

  #thaw(): void {
    if (!this.#frozen) return;
    this.#values = this.#values.slice();
    this.#frozen = false;
  }

  #named(flat: Float32Array): NamedTensors {
    return new Map(
      this.layout.tensors.map(({ name, offset, shape }) => [
        name,
        { data: flat.slice(offset, offset + sizeOf(shape)), shape },
      ]),
    );
  }

  #flat(tensors: NamedTensors, where: string): Float32Array {
    const flat = new Float32Array(this.layout.length);
    const expected = new Set(this.layout.tensors.map(({ name }) => name));
    const unknown = [...tensors.keys()].find((name) => !expected.has(name));
    if (unknown !== undefined) {
      throw new EngineError("unknown_tensor", `${where}: "${unknown}" does not belong here.`);
    }
    for (const { name, offset, shape } of this.layout.tensors) {
      const tensor = tensors.get(name);
      if (tensor === undefined) {
        throw new EngineError("missing_tensor", `${where}: "${name}" is missing.`);
      }
      if (tensor.shape.join() !== shape.join() || tensor.data.length !== sizeOf(shape)) {
        throw new EngineError(
          "wrong_shape",
          `${where}: "${name}" has shape [${tensor.shape.join(", ")}] instead of ` +
            `[${shape.join(", ")}].`,
        );
      }
      flat.set(tensor.data, offset);
    }
    return flat;
  }
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}
