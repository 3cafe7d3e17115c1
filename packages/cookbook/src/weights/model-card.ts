/** The contents of a model card. */
export interface ModelCardOptions {
  /** The name of the model that is published. */
  readonly name: string;
  /** The model that it was made of, by its name on the hub. */
  readonly baseModel: string;
  /** Whether the files are an adapter or a whole model. */
  readonly kind: "adapter" | "merged";
  /** A few sentences of your own: what it was trained on, and what for. */
  readonly description?: string | undefined;
  /** The licence, where it is not that of the base model. */
  readonly license?: string | undefined;
  /** Settings of the run, as `config.json` of its folder has them. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** What evaluations found. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
}

const shownSettings = ["learning_rate", "lora_rank", "num_epochs", "batch_size", "renderer_name"];

/** The `README.md` of a model on the hub. */
export function modelCard(options: ModelCardOptions): string {
  const { name, baseModel, kind, description, license, config = {}, metrics = {} } = options;
  const front = [
    "---",
    `base_model: ${baseModel}`,
    ...(license === undefined ? [] : [`license: ${license}`]),
    `library_name: ${kind === "adapter" ? "peft" : "transformers"}`,
    "pipeline_tag: text-generation",
    "tags:",
    "  - tinker",
    ...(kind === "adapter" ? ["  - lora"] : []),
    "---",
  ];
  const what =
    kind === "adapter"
      ? `A LoRA adapter of [${baseModel}](https://huggingface.co/${baseModel}).`
      : `A fine-tuned [${baseModel}](https://huggingface.co/${baseModel}); the adapter is merged into its weights.`;
  const settings = shownSettings.filter((key) => config[key] !== undefined && config[key] !== null);
  return `${[
    ...front,
    "",
    `# ${name}`,
    "",
    what,
    ...(description === undefined ? [] : ["", description]),
    ...table(
      "Training",
      settings.map((key) => [key, String(config[key])]),
    ),
    ...table(
      "Evaluation",
      Object.entries(metrics).map(([key, value]) => [key, value.toPrecision(4)]),
    ),
  ].join("\n")}\n`;
}

function table(title: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return [];
  return [
    "",
    `## ${title}`,
    "",
    "| | |",
    "|---|---|",
    ...rows.map(([key, value]) => `| ${key} | ${value} |`),
  ];
}
