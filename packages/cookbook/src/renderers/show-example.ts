import type { Renderer, SupervisedExample } from "./renderer.js";

/** Options of showing an example. */
export interface ShowExampleOptions {
  /** Colours by escape codes; without them trained text stands in brackets. @default true */
  readonly colors?: boolean;
}

const green = "\u001b[32m";
const grey = "\u001b[90m";
const reset = "\u001b[0m";

/**
 * An example as text for a terminal: trained tokens in green, context in grey. Special tokens are spelled
 * out, newlines are made visible, a picture is a note with its number of positions.
 */
export function showExample(
  example: SupervisedExample,
  tokenizer: Pick<Renderer["tokenizer"], "decode">,
  { colors = true }: ShowExampleOptions = {},
): string {
  const paint = (text: string, isTrained: boolean): string => {
    if (colors) return `${isTrained ? green : grey}${text}${reset}`;
    return isTrained ? `[${text}]` : text;
  };
  return [...runsOf(example)]
    .map(({ ids, note, isTrained }) => {
      const text = note ?? tokenizer.decode(ids).replaceAll("\n", "↵\n");
      return paint(withoutEscapes(text), isTrained);
    })
    .join("");
}

interface Run {
  readonly ids: number[];
  readonly isTrained: boolean;
  readonly note?: string;
}

function* runsOf({ input, weights }: SupervisedExample): Generator<Run> {
  let run: Run | undefined;
  let position = 0;
  for (const chunk of input.chunks) {
    if (chunk.type !== "encoded_text") {
      if (run) yield run;
      run = undefined;
      const length = "expectedTokens" in chunk ? (chunk.expectedTokens ?? 0) : 0;
      yield { ids: [], isTrained: false, note: `⟨${chunk.type}: ${length} positions⟩` };
      position += length;
      continue;
    }
    for (const id of chunk.tokens) {
      const isTrained = (weights[position++] ?? 0) > 0;
      if (run?.isTrained !== isTrained) {
        if (run) yield run;
        run = { ids: [], isTrained };
      }
      run.ids.push(id);
    }
  }
  if (run) yield run;
}

/** Data must not be able to control the terminal. */
function withoutEscapes(text: string): string {
  return text.replaceAll("\u001b", "␛");
}
