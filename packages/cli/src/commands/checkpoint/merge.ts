import path from "node:path";
import { defineCommand } from "../../command.js";
import { withAdapter } from "../../connect/adapter-source.js";
import { adapterArguments, adapterOptions } from "../../parse/adapter-options.js";

/** `checkpoint merge` */
export const command = defineCommand({
  summary: "Merge a checkpoint into its base model, as a Hugging Face folder.",
  options: {
    ...adapterOptions,
    dtype: {
      type: "string",
      choices: ["keep", "F32", "F16", "BF16"],
      default: "keep",
      description: "Type of the weights; keep for the base model's",
    },
  },
  arguments: adapterArguments,
  examples: ["checkpoint merge tinker://RUN_ID/weights/NAME --output ./merged --dtype BF16"],
  async run(context, { arguments: { source }, options }) {
    const destination = path.resolve(context.terminal.cwd, options.output);
    const base = await withAdapter(context, source, options.baseModel, async (loaded) => {
      const { adapter, baseFolder } = loaded;
      const { mergeAdapter } = await import("@tinker-ts/engine");
      const progress = context.output.progress("Merging");
      try {
        await mergeAdapter({
          base: baseFolder,
          adapter,
          output: destination,
          dtype: options.dtype,
          overwrite: options.force,
          signal: context.signal,
          onProgress: ({ tensors, totalTensors, tensor }) =>
            progress.update(tensors, totalTensors, tensor),
        });
      } finally {
        progress.end();
      }
      return baseFolder;
    });
    context.output.result({
      json: () => ({ source, base, destination, dtype: options.dtype }),
      table: () => ({
        title: `Checkpoint Merge: ${source}`,
        headers: ["Property", "Value"],
        rows: [
          ["Source", source],
          ["Base", base],
          ["Written to", destination],
          ["Type", options.dtype],
        ],
      }),
    });
  },
});
