/** What a model card tells. */
export interface ModelCardFacts {
  readonly repo: string;
  /** The branch, where it is not the main one. */
  readonly revision: string | undefined;
  readonly baseModel: string | null;
  readonly loraRank: number | null;
  readonly checkpointPath: string;
}

/** A model card in the form that the hub reads. */
export function modelCard(facts: ModelCardFacts): string {
  const { repo, revision, baseModel, loraRank, checkpointPath } = facts;
  const branch = revision === undefined ? "" : `, revision=${JSON.stringify(revision)}`;
  const base = baseModel ?? "unknown";
  const rank = loraRank === null ? "" : ` of rank ${loraRank}`;
  return `---
base_model: ${base}
library_name: peft
tags:
- tinker
- peft
- lora
- base_model:adapter:${base}
tinker_path: ${checkpointPath}
---

# Adapter of ${base}

A LoRA adapter${rank}, trained over the Tinker API and uploaded from \`${checkpointPath}\`.

\`\`\`python
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("${repo}"${branch})
\`\`\`
`;
}
