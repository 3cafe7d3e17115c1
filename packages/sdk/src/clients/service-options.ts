import { option, type OptionsOf } from "../errors/check-options.js";
import type { EventListener } from "../runtime/events.js";
import type { RuntimeOptions } from "../runtime/runtime.js";
import type { ConnectionOptions } from "../session/connection-plan.js";
import type { UserMetadata } from "./training/make-training-client.js";

/** The fields of `ServiceClientOptions`. */
export const serviceOptions = {
  /** Facts about this program, kept with its session. */
  userMetadata: option<UserMetadata>(),
  /**
   * The project that the session belongs to.
   * @default TINKER_PROJECT_ID
   */
  projectId: option<string>(),
  /** The session's name for people to read, where the server keeps one. */
  displayName: option<string>(),
  /** Called with every event of the client. */
  onEvent: option<EventListener>(),
};

/** How a `ServiceClient` is made. */
export interface ServiceClientOptions
  extends ConnectionOptions, RuntimeOptions, OptionsOf<typeof serviceOptions> {}
