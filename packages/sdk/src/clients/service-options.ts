import type { EventListener } from "../runtime/events.js";
import type { RuntimeOptions } from "../runtime/runtime.js";
import type { ConnectionOptions } from "../session/connection-plan.js";
import type { UserMetadata } from "./create-model.js";

/** How a `ServiceClient` is made. */
export interface ServiceClientOptions extends ConnectionOptions, RuntimeOptions {
  /** Facts about this program, kept with its session. */
  readonly userMetadata?: UserMetadata | undefined;
  /**
   * The project that the session belongs to.
   * @default TINKER_PROJECT_ID
   */
  readonly projectId?: string | undefined;
  /** Hears of everything that happens inside. */
  readonly onEvent?: EventListener | undefined;
}
