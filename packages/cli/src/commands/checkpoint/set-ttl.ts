import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint set-ttl` */
export const command = defineCommand({
  summary: "Set or remove the expiry of a checkpoint.",
  options: {
    ttl: { type: "integer", placeholder: "SECONDS", description: "Seconds until it expires" },
    remove: { type: "flag", description: "Remove the expiry" },
  },
  arguments: checkpointArguments,
  examples: ["checkpoint set-ttl tinker://RUN_ID/weights/NAME --ttl 86400"],
  async run(context, { arguments: { path }, options: { ttl, remove } }) {
    if (remove === (ttl !== undefined)) {
      throw new CliError("Choose exactly one of --ttl SECONDS and --remove.");
    }
    if (ttl !== undefined && ttl <= 0) throw new CliError("--ttl must be above 0.");
    parseCheckpointPath(path);
    await withService(context, ({ rest, bounds }) =>
      rest.setCheckpointTtlFromTinkerPath(path, ttl ?? null, bounds),
    );
  },
});
