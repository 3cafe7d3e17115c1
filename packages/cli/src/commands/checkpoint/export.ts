import path from "node:path";
import { defineCommand } from "../../command.js";
import { loadAdapter } from "../../connect/adapter-source.js";
import { adapterArguments, adapterOptions } from "../../parse/adapter-options.js";

/** `checkpoint export` */
export const command = defineCommand({
  summary: "Writes a checkpoint as a PEFT adapter, checked against its base model.",
  details: [
    "Servers such as vLLM refuse adapters of the unembedding: leave it out with --no-unembed.",
  ],
  options: {
    ...adapterOptions,
    layout: {
      type: "string",
      choices: ["peft", "tinker"],
      default: "peft",
      description: "Names as PEFT reads them, or as the Python cookbook's merge does",
    },
    noUnembed: { type: "flag", description: "Leaves the adapter of the unembedding out" },
  },
  arguments: adapterArguments,
  async run(context, { arguments: { source }, options }) {
    const { adapter } = await loadAdapter(context, source, options.baseModel);
    const { writeAdapter } = await import("@tinker-ts/engine");
    const destination = path.resolve(context.terminal.cwd, options.output);
    const includeUnembed = !options.noUnembed;
    const { signal } = context;
    const { layout, force: overwrite } = options;
    await writeAdapter(destination, adapter, { includeUnembed, layout, overwrite, signal });
    const targets = adapter.targets.filter((target) => includeUnembed || target !== "lm_head");
    context.output.result({
      json: () => ({ source, destination, rank: adapter.rank, alpha: adapter.alpha, targets }),
      table: () => ({
        title: `Checkpoint Export: ${source}`,
        headers: ["Property", "Value"],
        rows: [
          ["Source", source],
          ["Written to", destination],
          ["Rank", String(adapter.rank)],
          ["Alpha", String(adapter.alpha)],
          ["Targets", targets.join(", ")],
        ],
      }),
    });
  },
});
