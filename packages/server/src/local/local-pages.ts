import { type Authenticator, credentialOf, localOwner } from "../auth/authenticator.js";
import { ApiError, badRequest } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { studioSettingsPath } from "./join-local-server.js";
import { isCapture, type Capture } from "../recording/recorder.js";

/** Where a server that wants the data directory asks the shared local server to end. */
export const handoverPath = "/local/handover";

/** What can be changed about a server that programs of one user share. */
export interface LocalActions {
  /** Ends the process. */
  readonly handOver: () => void;
  /** Shows more folders of run logs. */
  readonly addLogFolders: (folders: readonly string[]) => void;
  readonly setCapture: (capture: Capture) => void;
}

/** Pages of a shared local server for programs of the same user; they need the key of the data directory. */
export function localPages(authenticator: Authenticator, actions: LocalActions): ExtraPage[] {
  const forUser = (
    path: string,
    answer: (request: Request) => Promise<void> | void,
  ): ExtraPage => ({
    method: "POST",
    path,
    async answer(request) {
      const caller = authenticator.identify(credentialOf(request.headers));
      if (caller?.owner !== localOwner) {
        throw new ApiError(401, "the key of the data directory is needed");
      }
      await answer(request);
      return new Response(null, { status: 204 });
    },
  });
  return [
    // Once the answer is under way.
    forUser(handoverPath, () => void setImmediate(actions.handOver)),
    forUser(studioSettingsPath, async (request) => {
      const { logFolders = [], capture } = (await request.json()) as Record<string, unknown>;
      const isFolders =
        Array.isArray(logFolders) && logFolders.every((folder) => typeof folder === "string");
      if (!isFolders) throw badRequest("logFolders", "must be a list of folders");
      if (capture !== undefined && !isCapture(capture)) {
        throw badRequest("capture", 'must be "sample", "all" or "off"');
      }
      actions.addLogFolders(logFolders);
      if (capture !== undefined) actions.setCapture(capture);
    }),
  ];
}
