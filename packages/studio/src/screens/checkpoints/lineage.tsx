import type { StudioCheckpoint } from "tinker-ts/wire/studio";
import { Name } from "../../parts/words.js";

/** From the base model to a checkpoint: every checkpoint that its models were created from. */
export function Lineage({
  path,
  all,
}: {
  readonly path: string;
  readonly all: readonly StudioCheckpoint[];
}) {
  const chain: string[] = [];
  let at: string | null = path;
  while (at !== null && !chain.includes(at)) {
    chain.unshift(at);
    const here: string = at;
    at = all.find((one) => one.path === here)?.parent ?? null;
  }
  const base = all.find((one) => one.path === chain[0])?.baseModel;
  return (
    <section class="card padded" aria-label="Lineage">
      <h2>Lineage</h2>
      <ol class="row lineage">
        {base && (
          <li>
            <Name>{base}</Name>
          </li>
        )}
        {chain.map((one) => (
          <li key={one} class="mono">
            <span aria-hidden="true">→ </span>
            <Name>{one.replace("tinker://", "")}</Name>
          </li>
        ))}
      </ol>
    </section>
  );
}
