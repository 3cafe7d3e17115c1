import { useKeys } from "../../data/keys.js";
import { setQuery } from "../../data/location.js";
import { count } from "../../text/numbers.js";

/** The selected step, among those with data. */
export function StepChoice({
  steps,
  step,
}: {
  readonly steps: readonly number[];
  readonly step: number;
}) {
  const place = steps.indexOf(step);
  const set = (next: number): void => {
    const value = steps[Math.min(steps.length - 1, Math.max(0, next))];
    if (value !== undefined) setQuery({ step: String(value), at: null });
  };
  useKeys([
    { keys: "[", does: "previous step", run: () => set(place - 1) },
    { keys: "]", does: "next step", run: () => set(place + 1) },
  ]);
  const first = steps[0] ?? 0;
  const last = steps.at(-1) ?? 0;
  const isSparse = steps.length < last - first + 1;
  return (
    <span class="row step-choice">
      <span>step</span>
      <button
        type="button"
        class="button square"
        aria-label="Previous step"
        disabled={place <= 0}
        onClick={() => set(place - 1)}
      >
        ◂
      </button>
      <strong class="tabular" data-testid="step">
        {count(step)}
      </strong>
      <button
        type="button"
        class="button square"
        aria-label="Next step"
        disabled={place >= steps.length - 1}
        onClick={() => set(place + 1)}
      >
        ▸
      </button>
      <input
        type="range"
        aria-label="Step"
        aria-valuetext={`step ${step}`}
        min={0}
        max={Math.max(0, steps.length - 1)}
        value={Math.max(0, place)}
        onInput={(event) => set(Number(event.currentTarget.value))}
      />
      <span class="muted small tabular">
        {count(steps.length)} {steps.length === 1 ? "step" : "steps"} recorded
        {isSparse && "; others were not stored"}
      </span>
    </span>
  );
}

/** The step of the address, or the nearest with data, or the last. */
export function chosenStep(steps: readonly number[], asked: string): number | null {
  if (steps.length === 0) return null;
  if (asked === "") return steps.at(-1)!;
  const wanted = Number(asked);
  return steps.reduce((best, step) =>
    Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best,
  );
}
