import type { StudioCheckpoint } from "tinker-ts/wire/studio";
import { link } from "../../data/location.js";
import { numberOrNull } from "../../data/numbers.js";
import { Name } from "../../parts/words.js";
import { bytes, count, figure } from "../../text/numbers.js";

/** Two checkpoints beside each other. */
export function ComparePair({
  one,
  other,
}: {
  readonly one: StudioCheckpoint;
  readonly other: StudioCheckpoint;
}) {
  const rows: [string, string, string][] = [
    ["run", one.runName, other.runName],
    ["base model", one.baseModel, other.baseModel],
    ["rank", String(one.rank), String(other.rank)],
    [
      "step",
      one.step === null ? "–" : count(one.step),
      other.step === null ? "–" : count(other.step),
    ],
    ["nll", figure(numberOrNull(one.nll)), figure(numberOrNull(other.nll))],
    ["size", bytes(one.sizeBytes), bytes(other.sizeBytes)],
    ["kind", one.kind, other.kind],
  ];
  const paths = [one, other].filter(({ kind }) => kind === "sampler").map(({ path }) => path);
  return (
    <section class="card" aria-label="Two checkpoints">
      <table class="table">
        <caption class="unseen">Two checkpoints</caption>
        <thead>
          <tr>
            <th>
              <span class="unseen">Field</span>
            </th>
            <th>
              <Name>{one.name}</Name>
            </th>
            <th>
              <Name>{other.name}</Name>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([what, left, right]) => (
            <tr key={what} class={left === right ? "muted" : ""}>
              <th scope="row">{what}</th>
              <td class="tabular">
                <Name>{left}</Name>
              </td>
              <td class="tabular">{left === right ? "same" : <Name>{right}</Name>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {paths.length > 0 && (
        <p class="padded">
          <a href={link("playground", { columns: paths.join(",") })}>
            Ask {paths.length === 2 ? "both" : "it"} the same ▸
          </a>
        </p>
      )}
    </section>
  );
}
