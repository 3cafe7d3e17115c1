import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint publish` */
export const command = defineCommand({
  summary: "Publish a checkpoint.",
  options: {},
  arguments: checkpointArguments,
  async run(context, { arguments: { path } }) {
    parseCheckpointPath(path);
    await withService(context, ({ rest, bounds }) =>
      rest.publishCheckpointFromTinkerPath(path, bounds),
    );
  },
});
