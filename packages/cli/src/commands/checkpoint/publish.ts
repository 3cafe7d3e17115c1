import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint publish` */
export const command = defineCommand({
  summary: "Lets everybody use a checkpoint; prints nothing.",
  options: {},
  arguments: { path: { description: "tinker://RUN_ID/weights/NAME" } },
  async run(context, { arguments: { path } }) {
    parseCheckpointPath(path);
    await withService(context, ({ rest, bounds }) =>
      rest.publishCheckpointFromTinkerPath(path, bounds),
    );
  },
});
