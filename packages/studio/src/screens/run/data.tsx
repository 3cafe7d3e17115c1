import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { numberOrNull } from "../../data/numbers.js";
import { count, figure, percent } from "../../text/numbers.js";
import { ExhibitBrowser } from "./exhibit-browser.js";

/** Training data, token by token. */
export function DataTab({ run }: { readonly run: StudioRunDetail }) {
  return (
    <ExhibitBrowser
      run={run}
      kind="datum"
      what={["example", "examples"]}
      opensFirst
      facts={({ tokenCount, trainedCount, nll }) =>
        `${count(tokenCount)} tokens · ${percent(tokenCount > 0 ? trainedCount / tokenCount : 0)} trained · nll ${figure(numberOrNull(nll))}`
      }
    />
  );
}
