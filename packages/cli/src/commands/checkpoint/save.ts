import { writeFile } from "node:fs/promises";
import path from "node:path";
import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { findSource } from "../../connect/model-source.js";
import { nameOf, sourceOptions } from "../../parse/source-options.js";

/** `checkpoint save` */
export const command = defineCommand({
  summary: "Save sampler weights of a new adapter, or of a checkpoint, under a new name.",
  options: {
    ...sourceOptions,
    output: {
      type: "string",
      short: "o",
      placeholder: "FILE",
      required: true,
      description: "JSON file for the details of the saved weights",
    },
    name: { type: "string", description: "Name of the checkpoint; by default from the model's" },
    rank: { type: "integer", min: 1, default: 32, description: "Rank of a new adapter" },
    seed: { type: "integer", description: "Random seed of a new adapter" },
    noTrainMlp: { type: "flag", description: "No adapter for feed-forward layers" },
    noTrainAttn: { type: "flag", description: "No adapter for attention layers" },
    noTrainUnembed: { type: "flag", description: "No adapter for the unembedding" },
  },
  arguments: {},
  examples: ["checkpoint save --model tinker-ts/sprout --rank 16 --output saved.json"],
  async run(context, { options }) {
    const source = await findSource(options, context.terminal.cwd, "statePath");
    const name =
      options.name ?? `checkpoint-${nameOf(source).toLowerCase().replace(/[/:]+/g, "-")}`;
    const facts = await withService(context, async ({ service, rest, bounds }) => {
      const training =
        "baseModel" in source
          ? await service.createLoraTrainingClient({
              baseModel: source.baseModel,
              rank: options.rank,
              seed: options.seed,
              trainMlp: !options.noTrainMlp,
              trainAttn: !options.noTrainAttn,
              trainUnembed: !options.noTrainUnembed,
              ...bounds,
            })
          : await service.createTrainingClientFromState(source.modelPath, bounds);
      const saved = await training.saveWeightsForSampler(name, bounds);
      const { baseModel } = await rest.getTrainingRun(training.modelId, bounds);
      return {
        base_model: baseModel,
        model_id: training.modelId,
        weights_path: saved.path,
        saved_at: `${new Date().toISOString().slice(0, 19)}Z`,
        response: { path: saved.path, type: saved.type },
      };
    });
    const file = path.resolve(context.terminal.cwd, options.output);
    await writeFile(file, `${JSON.stringify(facts, null, 2)}\n`);
    context.output.result({
      json: () => facts,
      table: () => ({
        title: `Checkpoint Save: ${name}`,
        headers: ["Property", "Value"],
        rows: [
          ["Base Model", facts.base_model],
          ["Model ID", facts.model_id],
          ["Weights Path", facts.weights_path],
          ["Written to", file],
        ],
      }),
    });
  },
});
