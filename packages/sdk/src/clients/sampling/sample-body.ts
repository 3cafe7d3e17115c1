import { jsonBody, type EncodedBody } from "../../transport/api.js";
import { ModelInput } from "../../types/model-input.js";
import { encodeJson } from "../../wire/json-codec.js";
import type { SampleCall } from "./sample-call.js";
import type { SampleTarget } from "./sampler.js";

/** Placeholders for the number and the tokens in a template of the body. */
const seqIdMark = 1_987_654_321;
const tokenMark = 1_876_543_219;

/** A body with gaps for what differs from call to call. */
interface Form {
  readonly call: SampleCall;
  readonly beforeFirst: string;
  readonly between: string;
  readonly afterLast: string;
  readonly isNumberFirst: boolean;
}

/**
 * Writes the bodies of samples. Calls by the thousand differ in their tokens and their number alone, so that the
 * schema writes a form of them once, with gaps, and the gaps are filled for each.
 */
export class SampleBodies {
  readonly #target: SampleTarget;
  #form: Form | undefined;

  constructor(target: SampleTarget) {
    this.#target = target;
  }

  write(call: SampleCall, seqId?: number): EncodedBody {
    const tokens = onlyTokens(call.prompt);
    const isFormed = tokens !== undefined && seqId !== undefined && !call.targetPromptLogprobs;
    if (!isFormed) return this.#encode(call, seqId);
    if (!this.#form || !isAlike(this.#form.call, call)) this.#form = this.#writeForm(call);
    const form = this.#form;
    if (!form) return this.#encode(call, seqId);
    const { beforeFirst, between, afterLast, isNumberFirst } = form;
    const list = tokens.join(",");
    const [first, second] = isNumberFirst ? [seqId, list] : [list, seqId];
    return { content: `${beforeFirst}${first}${between}${second}${afterLast}` };
  }

  /** Undefined when a mark stands somewhere else too. */
  #writeForm(call: SampleCall): Form | undefined {
    const marked = { ...call, prompt: ModelInput.fromInts([tokenMark]) };
    const { content } = this.#encode(marked, seqIdMark);
    const parts = String(content).split(new RegExp(`(${seqIdMark}|${tokenMark})`));
    if (parts.length !== 5 || parts[1] === parts[3]) return undefined;
    const [beforeFirst = "", first, between = "", , afterLast = ""] = parts;
    const isNumberFirst = first === String(seqIdMark);
    return { call, beforeFirst, between, afterLast, isNumberFirst };
  }

  #encode(call: SampleCall, seqId: number | undefined): EncodedBody {
    const { prompt, numSamples, samplingParams, promptLogprobs, topkPromptLogprobs } = call;
    const { topkSampleLogprobs, targetPromptLogprobs, promptAltTokensK } = call;
    const { promptLogprobsLastN } = call;
    // Field by field: merging objects takes more memory than all of the rest.
    const request = {
      ...this.#target,
      seqId,
      prompt,
      numSamples,
      samplingParams,
      promptLogprobs,
      topkPromptLogprobs,
      topkSampleLogprobs,
      targetPromptLogprobs,
      promptAltTokensK,
      promptLogprobsLastN,
    };
    return jsonBody(encodeJson("SampleRequest", request));
  }
}

/** The tokens of a prompt that is nothing but one list of them. */
function onlyTokens({ chunks }: ModelInput): Int32Array | undefined {
  const [chunk] = chunks;
  return chunks.length === 1 && chunk?.type === "encoded_text" ? chunk.tokens : undefined;
}

/** Equal parameters are the same object: `checkSampleCall` sees to it. */
function isAlike(form: SampleCall, call: SampleCall): boolean {
  return (
    form.samplingParams === call.samplingParams &&
    form.numSamples === call.numSamples &&
    form.promptLogprobs === call.promptLogprobs &&
    form.topkPromptLogprobs === call.topkPromptLogprobs &&
    form.topkSampleLogprobs === call.topkSampleLogprobs &&
    form.promptAltTokensK === call.promptAltTokensK &&
    form.promptLogprobsLastN === call.promptLogprobsLastN
  );
}
