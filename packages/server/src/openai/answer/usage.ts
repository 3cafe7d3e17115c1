/** The usage of a request in the API's format. */
export function usageOf(counts: {
  readonly prompt: number;
  readonly cached: number;
  readonly completion: number;
  readonly reasoning: number;
}): object {
  return {
    prompt_tokens: counts.prompt,
    completion_tokens: counts.completion,
    total_tokens: counts.prompt + counts.completion,
    prompt_tokens_details: { cached_tokens: counts.cached },
    completion_tokens_details: { reasoning_tokens: counts.reasoning },
  };
}
