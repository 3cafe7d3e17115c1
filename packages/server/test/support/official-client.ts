/** A tensor as the official client writes it. */
export interface RawTensor {
  readonly data: readonly number[];
  readonly dtype: "int64" | "float32";
  readonly shape: readonly number[];
  readonly sparse_crow_indices?: readonly number[];
  readonly sparse_col_indices?: readonly number[];
}

/** What a test changes of a sample's body. */
export interface SampleFields {
  readonly prompt?: readonly number[];
  readonly sampling_params?: Readonly<Record<string, unknown>>;
  readonly target_prompt_logprobs?: RawTensor;
  readonly [field: string]: unknown;
}

/** The body of `asample` as the official client 0.39 writes it: with all defaults, without nulls. */
export function officialSample({ prompt = [1, 2, 3], ...fields }: SampleFields): object {
  const { sampling_params: params, ...others } = fields;
  return {
    num_samples: 1,
    prompt: { chunks: [{ tokens: prompt, type: "encoded_text" }] },
    sampling_params: {
      max_tokens: 4,
      seed: 5,
      temperature: 1.0,
      top_k: -1,
      top_p: 1.0,
      ...params,
    },
    prompt_logprobs: false,
    topk_prompt_logprobs: 0,
    topk_sample_logprobs: 0,
    prompt_alt_tokens_k: 0,
    record_stability_info: false,
    type: "sample",
    ...others,
  };
}

/** The same body as client 0.25 writes it. */
export function formerSample(fields: SampleFields): object {
  const newer = ["topk_sample_logprobs", "prompt_alt_tokens_k", "record_stability_info"];
  const entries = Object.entries(officialSample(fields));
  return Object.fromEntries(entries.filter(([name]) => !newer.includes(name)));
}

/** Posts a body as it is to a route of the API. */
export function rawRequest(
  origin: string,
  route: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Request {
  return new Request(`${origin}/api/v1/${route}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}
