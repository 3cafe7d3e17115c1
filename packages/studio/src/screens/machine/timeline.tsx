import type { StudioSlot } from "tinker-ts/wire/studio";
import { span } from "../../text/times.js";

const height = 64;

/** Work of the last minutes: training and sampling as bars, waiting as a line of its own. */
export function Timeline({ slots }: { readonly slots: readonly StudioSlot[] }) {
  const most = Math.max(1, ...slots.map(({ trainingMs, samplingMs }) => trainingMs + samplingMs));
  const longest = Math.max(1, ...slots.map(({ waitMs }) => waitMs));
  const width = 100 / Math.max(1, slots.length);
  const total = (pick: (slot: StudioSlot) => number): number =>
    slots.reduce((sum, slot) => sum + pick(slot), 0);
  const label = `training ${span(total(({ trainingMs }) => trainingMs))}, sampling ${span(total(({ samplingMs }) => samplingMs))}, waiting ${span(total(({ waitMs }) => waitMs))} in the last ten minutes`;
  return (
    <>
      <svg
        class="timeline"
        viewBox={`0 0 100 ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {slots.map(({ at, trainingMs, samplingMs }, index) => {
          const training = (trainingMs / most) * (height - 4);
          const sampling = (samplingMs / most) * (height - 4);
          const x = index * width + width * 0.1;
          return (
            <g key={at}>
              <rect class="a" x={x} y={height - training} width={width * 0.8} height={training} />
              <rect
                class="b"
                x={x}
                y={height - training - sampling}
                width={width * 0.8}
                height={sampling}
              />
            </g>
          );
        })}
        <path
          class="wait"
          vector-effect="non-scaling-stroke"
          d={slots
            .map(
              ({ waitMs }, index) =>
                `${index === 0 ? "M" : "L"}${(index + 0.5) * width} ${height - 2 - (waitMs / longest) * (height - 6)}`,
            )
            .join("")}
        />
      </svg>
      <p class="row small muted">
        <span class="row tight">
          <span class="key a" aria-hidden="true" /> training
        </span>
        <span class="row tight">
          <span class="key b" aria-hidden="true" /> sampling
        </span>
        <span class="row tight">
          <span class="key wait" aria-hidden="true" /> waiting (its own scale, at most{" "}
          {span(longest)})
        </span>
      </p>
    </>
  );
}
