import { DependencyError, TinkerError } from "../../errors/tinker-error.js";
import type { Datum } from "../../types/datum.js";
import type { CustomLossFn } from "./custom-loss.js";

/** What is used of a `@jax-js/jax` array here; annotate with the library's own type to compute with it. */
export interface JaxArray {
  /** Sizes of the dimensions. */
  readonly shape: number[];
  /** The values, once they are computed. */
  data(): Promise<ArrayLike<number>>;
}

/** What a loss over arrays returns: the loss, or the loss and metrics. */
export type JaxLoss<A extends JaxArray> =
  | A
  | {
      /** The value of the loss, an array without dimensions. */
      readonly loss: A;
      /** Numbers to add to the metrics of the result. */
      readonly metrics?: Readonly<Record<string, A | number>>;
    };

type Library = typeof import("@jax-js/jax");

/** The library's function, for the one form in which it is used here. */
type ValueAndGrad<A> = (
  fn: (arrays: A[]) => [A, Record<string, A>],
  options: { hasAux: true },
) => (arrays: A[]) => [[A, Record<string, A>], A[]];

/**
 * A custom loss written with `@jax-js/jax` arrays; its gradients are found by the library.
 *
 * `forwardBackwardCustom(data, jaxLoss((data, logprobs: np.Array[]) => ...))`
 */
export function jaxLoss<A extends JaxArray>(
  lossFn: (data: readonly Datum[], logprobs: A[]) => JaxLoss<A>,
): CustomLossFn {
  return async (data, logprobs) => {
    const { numpy, valueAndGrad } = await loadJax();
    const inputs = logprobs.map(({ data: values, shape }) =>
      numpy.array(Float32Array.from(values as Float32Array), {
        shape: [...(shape ?? [values.length])],
      }),
    );
    // Plain numbers are no part of what the library follows; they are handed around it.
    const metrics: Record<string, number> = {};
    const differentiable = (arrays: A[]): [A, Record<string, A>] => {
      const returned = lossFn(data, arrays);
      const { loss, metrics: given = {} } = "loss" in returned ? returned : { loss: returned };
      const followed: Record<string, A> = {};
      for (const [name, value] of Object.entries(given)) {
        if (typeof value === "number") metrics[name] = value;
        else followed[name] = value;
      }
      return [loss, followed];
    };
    const differentiate = valueAndGrad as unknown as ValueAndGrad<A>;
    const [[loss, followed], gradients] = differentiate(differentiable, { hasAux: true })(
      inputs as unknown as A[],
    );
    for (const [name, array] of Object.entries(followed)) metrics[name] = await scalar(array);
    return {
      loss: await scalar(loss),
      gradients: await Promise.all(gradients.map(toFloats)),
      metrics,
    };
  };
}

let loading: Promise<Library> | undefined;

/** Loaded with the first loss; on Node its WebAssembly backend does the work. */
function loadJax(): Promise<Library> {
  loading ??= (async () => {
    const library = await import("@jax-js/jax").catch((cause: unknown) => {
      throw new DependencyError("@jax-js/jax", "to write losses with its arrays", { cause });
    });
    await library.init("wasm");
    library.defaultDevice("wasm");
    return library;
  })();
  return loading;
}

async function toFloats(array: JaxArray): Promise<Float32Array> {
  return Float32Array.from(await array.data());
}

async function scalar(array: JaxArray): Promise<number> {
  const values = await array.data();
  if (values.length === 1) return values[0]!;
  throw new TinkerError(
    `A custom loss and its metrics must be scalars, got ${values.length} values.`,
    {
      code: "bad_loss",
    },
  );
}
