import path from "node:path";
import { defineCommand } from "../../command.js";
import { withAdapter, type LoadedAdapter } from "../../connect/adapter-source.js";
import { adapterArguments, adapterOptions } from "../../parse/adapter-options.js";

/** `checkpoint export` */
export const command = defineCommand({
  summary: "Export a checkpoint as a PEFT adapter, checked against its base model.",
  details: [
    "In the layout peft, matrices have the names of the Hugging Face model, as PEFT and vLLM load them.",
    "In the layout tinker, those of the service's archives, which checkpoint import reads again.",
    "Servers such as vLLM refuse adapters of the unembedding: leave it out with --no-unembed.",
  ],
  options: {
    ...adapterOptions,
    layout: {
      type: "string",
      choices: ["peft", "tinker"],
      default: "peft",
      description: "For PEFT and servers, or for the Python cookbook's merge and to import again",
    },
    noUnembed: { type: "flag", description: "Skip the adapter of the unembedding" },
  },
  arguments: adapterArguments,
  async run(context, { arguments: { source }, options }) {
    const { terminal, signal } = context;
    const output = path.resolve(terminal.cwd, options.output);
    const how: ExportOptions = {
      output,
      includeUnembed: !options.noUnembed,
      overwrite: options.force,
      signal,
    };
    const write = options.layout === "peft" ? writeForServers : writeArchive;
    const { rank, alpha, targets } = await withAdapter(
      context,
      source,
      options.baseModel,
      async (loaded) => ({ ...loaded.adapter, targets: await write(loaded, how) }),
    );
    context.output.result({
      json: () => ({ source, destination: output, rank, alpha, targets }),
      table: () => ({
        title: `Checkpoint Export: ${source}`,
        headers: ["Property", "Value"],
        rows: [
          ["Source", source],
          ["Written to", output],
          ["Rank", String(rank)],
          ["Alpha", String(alpha)],
          ["Targets", targets.join(", ")],
        ],
      }),
    });
  },
});

interface ExportOptions {
  readonly output: string;
  readonly includeUnembed: boolean;
  readonly overwrite: boolean;
  readonly signal: AbortSignal;
}

/** Writes the adapter with the names of the Hugging Face model, and returns the kinds of its matrices. */
async function writeForServers(
  { folder, baseFolder, adapter }: LoadedAdapter,
  options: ExportOptions,
): Promise<readonly string[]> {
  const { exportPeft } = await import("@tinker-ts/cookbook/weights");
  const baseModel = adapter.baseModel ?? undefined;
  const written = await exportPeft({ ...options, adapter: folder, base: baseFolder, baseModel });
  return written.targetModules;
}

/** Writes the adapter as archives of the service have it, and returns the kinds of its matrices. */
async function writeArchive(
  { adapter }: LoadedAdapter,
  { output, ...options }: ExportOptions,
): Promise<readonly string[]> {
  const { writeAdapter } = await import("@tinker-ts/engine");
  await writeAdapter(output, adapter, { ...options, layout: "tinker" });
  return adapter.targets.filter((target) => options.includeUnembed || target !== "lm_head");
}
