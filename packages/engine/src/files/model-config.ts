/** What the engine needs to know of a model; parsed from a Hugging Face `config.json`. */
export interface ModelConfig {
  readonly architecture: "llama" | "qwen2" | "qwen3";
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly normEpsilon: number;
  readonly rope: RopeConfig;
  /** Longest sequence the model was made for, in tokens. */
  readonly contextLength: number;
  /** The unembedding is the embedding matrix itself. */
  readonly tiedEmbeddings: boolean;
  /** Biases on the q, k and v projections (Qwen2). */
  readonly qkvBias: boolean;
  /** RMS norm on each query and key head (Qwen3). */
  readonly qkNorm: boolean;
  readonly bosTokenId: number | null;
  readonly eosTokenIds: readonly number[];
}

/** Rotary position embedding; `llama3` stretches the low frequencies as Llama 3.1 and later do. */
export interface RopeConfig {
  readonly theta: number;
  readonly scaling: null | {
    readonly kind: "llama3";
    readonly factor: number;
    readonly lowFrequencyFactor: number;
    readonly highFrequencyFactor: number;
    readonly originalContextLength: number;
  };
}
