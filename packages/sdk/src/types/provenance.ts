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
  spans.forEach(({ kind, sequenceId, offset = 0, length: count }, index) => {
    const check = (name: string, isValid: boolean, wanted: string): void => {
      if (!isValid) throw new ArgumentError(`${field}[${index}].${name}`, `must be ${wanted}`);
    };
    check("kind", kind === "prompt" || kind === "sampled", "prompt or sampled");
    check(
      "sequenceId",
      typeof sequenceId === "string" && sequenceId !== "",
      "the id of a sequence",
    );
    check("offset", Number.isSafeInteger(offset) && offset >= 0, "a whole number of 0 or more");
    check("length", Number.isSafeInteger(count) && count >= 1, "a whole number of 1 or more");
    covered += count;
  });
  if (covered === length) return;
  throw new ArgumentError(field, `covers ${covered} positions, but there are ${length}`);
}

/** Where a datum of a whole prompt and the sequence sampled from it comes from, shifted by one as `policyDatum` does. */
export function sampleProvenance(
  sequenceId: string,
  promptLength: number,
  sampledLength: number,
): DatumProvenance {
  const prompt = (offset: number, length: number): ProvenanceSpan[] =>
    length > 0 ? [{ kind: "prompt", sequenceId, offset, length }] : [];
  const sampled = (length: number): ProvenanceSpan[] =>
    length > 0 ? [{ kind: "sampled", sequenceId, length }] : [];
  const isBare = promptLength === 0;
  const targets: ProvenanceSpan = isBare
    ? { kind: "sampled", sequenceId, offset: 1, length: sampledLength - 1 }
    : { kind: "sampled", sequenceId, length: sampledLength };
  return {
    modelInput: [...prompt(0, promptLength), ...sampled(sampledLength - 1)],
    lossFnInputs: [...prompt(1, promptLength - 1), targets],
  };
}
