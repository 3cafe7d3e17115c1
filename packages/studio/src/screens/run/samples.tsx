import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { numberOrNull } from "../../data/numbers.js";
import { Name } from "../../parts/words.js";
import { count, figure } from "../../text/numbers.js";
import { ExhibitBrowser } from "./exhibit-browser.js";

/** Stored samples: answers of the playground, and samples captured by a program. */
export function SamplesTab({ run }: { readonly run: StudioRunDetail }) {
  return (
    <ExhibitBrowser
      run={run}
      kind="sample"
      what={["sample", "samples"]}
      opensFirst
      facts={({ trainedCount, nll, stopReason, split }) => (
        <>
          <Name>{split}</Name> · {count(trainedCount)} tokens · nll {figure(numberOrNull(nll))}
          {stopReason && (
            <>
              {" · "}
              <Name>{stopReason}</Name>
            </>
          )}
        </>
      )}
    />
  );
}
