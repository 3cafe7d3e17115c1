import type { StudioRunDetail, StudioSpans } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { useResource } from "../../data/resource.js";
import { Name } from "../../parts/words.js";
import { count } from "../../text/numbers.js";
import { span } from "../../text/times.js";

const shownSteps = 20;

/** The time of the last steps, as logged by the loop. */
export function Spans({ run }: { readonly run: StudioRunDetail }) {
  const { value } = useResource<StudioSpans>(`${run.id} ${run.step}`, (abort) =>
    call("spans", {
      params: { id: run.id },
      query: { from: Math.max(0, run.step - shownSteps) },
      signal: abort,
    }),
  );
  const last = value.value?.steps.at(-1);
  if (!last || last.spans.length === 0) return null;
  const longest = Math.max(...last.spans.map(({ endSeconds }) => endSeconds), 0.001);
  return (
    <section class="card padded stack" aria-label="Time">
      <h2>
        Where the time of step {count(last.step)} went{" "}
        <span class="muted tabular">{span(longest * 1000)}</span>
      </h2>
      <ul class="spans">
        {last.spans.map(({ name, startSeconds, endSeconds }, index) => (
          <li key={index}>
            <span class="cut small">
              <Name>{name}</Name>
            </span>
            <span class="track">
              <span
                class="bar"
                style={{
                  left: `${(startSeconds / longest) * 100}%`,
                  width: `${Math.max(0.3, ((endSeconds - startSeconds) / longest) * 100)}%`,
                }}
              />
            </span>
            <span class="number small muted">{span((endSeconds - startSeconds) * 1000)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
