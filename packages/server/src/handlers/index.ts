import type { Authenticator } from "../auth/authenticator.js";
import type { SignedLinks } from "../auth/signed-links.js";
import type { Core } from "../core.js";
import type { Handlers } from "../http/call.js";
import { resultRoutes } from "../journal/results.js";
import { samplingRoutes } from "../sampling/routes.js";
import { trainingRoutes } from "../training/routes.js";
import { checkpointHandlers } from "./checkpoints.js";
import { runHandlers } from "./runs.js";
import { serviceHandlers } from "./service.js";

/** The handlers of all endpoints of the route table. */
export function createHandlers(
  core: Core,
  authenticator: Authenticator,
  links: SignedLinks,
  usesBatchPolling: boolean,
): Handlers {
  const { store, clock, logger } = core.context;
  const parts = { ...core, store, clock, logger, authenticator };
  return {
    ...serviceHandlers(core, authenticator, usesBatchPolling),
    ...trainingRoutes(parts),
    ...samplingRoutes(parts),
    ...resultRoutes(core.results),
    ...runHandlers(core, links),
    ...checkpointHandlers(core, links),
  };
}
