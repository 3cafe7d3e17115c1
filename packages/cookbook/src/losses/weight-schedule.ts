import { ArgumentError } from "tinker-ts";

/** A weight that depends on the training step, counted from 0. */
export type WeightSchedule = (step: number) => number;

/** Options of `ramp`. */
export interface RampOptions {
  /** The weight before the ramp. */
  readonly from: number;
  /** The weight after it. */
  readonly to: number;
  /** Steps that the ramp takes. */
  readonly steps: number;
  /**
   * The step at which it begins.
   * @default 0
   */
  readonly start?: number;
  /**
   * A straight line, or half a cosine, which begins and ends gently.
   * @default "linear"
   */
  readonly shape?: "linear" | "cosine";
}

/** A weight that goes from one value to another and stays there. */
export function ramp({
  from,
  to,
  steps,
  start = 0,
  shape = "linear",
}: RampOptions): WeightSchedule {
  if (!(steps > 0)) throw new ArgumentError("steps", `must be above 0, got ${steps}`);
  return (step) => {
    const done = Math.min(Math.max((step - start) / steps, 0), 1);
    return from + (to - from) * (shape === "cosine" ? (1 - Math.cos(Math.PI * done)) / 2 : done);
  };
}

/** The weight at a step. */
export function weightAt(weight: number | WeightSchedule, step: number, name: string): number {
  const value = typeof weight === "function" ? weight(step) : weight;
  if (Number.isFinite(value)) return value;
  throw new ArgumentError(
    `terms.${name}.weight`,
    `must be a finite number, got ${String(value)} at step ${step}`,
  );
}
