import { ArgumentError } from "../errors/argument-error.js";

/** A run of consecutive tokens that a sample saw or drew. */
export interface ProvenanceSpan {
  /** `prompt`: tokens of the prompt that the sequence was sampled from; `sampled`: tokens that it drew. */
  readonly kind: "prompt" | "sampled";
  /** `sequenceId` of the sequence. */
  readonly sequenceId: string;
  /**
   * Where the run starts, within that prompt or those drawn tokens.
   * @default 0
   */
  readonly offset?: number | undefined;
  /** Tokens in the run. */
  readonly length: number;
}

/** Where the tokens of a datum come from; the runs of each list cover all of its positions in their order. */
export interface DatumProvenance {
  /** Runs that cover the input. */
  readonly modelInput: readonly ProvenanceSpan[];
  /** Runs that cover `target_tokens`. */
  readonly lossFnInputs: readonly ProvenanceSpan[];
}

/** Refuses runs that do not cover a number of positions. */
export function checkSpans(field: string, spans: readonly ProvenanceSpan[], length: number): void {
  let covered = 0;
  spans.forEach((span, index) => {
    const { kind, sequenceId, offset = 0, length: count } = span;
    const problem =
      (kind !== "prompt" && kind !== "sampled" && "kind") ||
      ((typeof sequenceId !== "string" || sequenceId === "") && "sequenceId") ||
      (!(Number.isSafeInteger(offset) && offset >= 0) && "offset") ||
      (!(Number.isSafeInteger(count) && count >= 1) && "length");
    if (problem) {
      throw new ArgumentError(`${field}[${index}].${problem}`, `cannot be ${span[problem]}`);
    }
    covered += count;
  });
  if (covered === length) return;
  throw new ArgumentError(field, `covers ${covered} of ${length} positions`);
}

/** Where a datum of a whole prompt and the sequence sampled from it comes from, shifted by one as `policyDatum` does. */
export function sampleProvenance(
  sequenceId: string,
  promptLength: number,
  sampledLength: number,
): DatumProvenance {
  const span = (kind: ProvenanceSpan["kind"], offset: number, length: number): ProvenanceSpan[] =>
    length > 0 ? [{ kind, sequenceId, offset, length }] : [];
  // Without a prompt nothing predicts the first token.
  const first = promptLength === 0 ? 1 : 0;
  return {
    modelInput: [...span("prompt", 0, promptLength), ...span("sampled", 0, sampledLength - 1)],
    lossFnInputs: [
      ...span("prompt", 1, promptLength - 1),
      ...span("sampled", first, sampledLength - first),
    ],
  };
}
