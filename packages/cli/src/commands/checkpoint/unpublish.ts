import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint unpublish` */
export const command = defineCommand({
  summary: "Unpublish a checkpoint.",
  options: {},
  arguments: checkpointArguments,
  async run(context, { arguments: { path } }) {
    parseCheckpointPath(path);
    await withService(context, ({ rest, bounds }) =>
      rest.unpublishCheckpointFromTinkerPath(path, bounds),
    );
  },
});
