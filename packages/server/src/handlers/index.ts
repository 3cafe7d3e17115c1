import type { Authenticator } from "../auth/authenticator.js";
import type { SignedLinks } from "../auth/signed-links.js";
import type { Core } from "../core.js";
import type { Handlers } from "../http/call.js";
import { checkpointHandlers } from "./checkpoints.js";
import { futureHandlers } from "./futures.js";
import { runHandlers } from "./runs.js";
import { samplingHandlers } from "./sampling.js";
import { serviceHandlers } from "./service.js";
import { trainingHandlers } from "./training.js";

/** What every endpoint of the route table does. */
export function createHandlers(
  core: Core,
  authenticator: Authenticator,
  links: SignedLinks,
): Handlers {
  return {
    ...serviceHandlers(core, authenticator),
    ...trainingHandlers(core, authenticator),
    ...samplingHandlers(core),
    ...futureHandlers(core),
    ...runHandlers(core, links),
    ...checkpointHandlers(core, links),
  };
}
