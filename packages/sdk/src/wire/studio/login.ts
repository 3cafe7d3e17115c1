import type { StudioTime } from "./values.js";

/** `GET hello`: what the page has to know before anything else; the only answer without a login. */
export interface StudioHello {
  /** Version of the server; a page of another version offers to reload. */
  readonly version: string;
  /** Whether this caller has to log in first; everything below is null then. */
  readonly needsLogin: boolean;
  /** Whose things are shown. */
  readonly owner: string | null;
  /** Where this server is reached, for commands to copy. */
  readonly address: string | null;
  /** Which exhibits are kept. */
  readonly capture: StudioCapture | null;
  /** Names of the base models. */
  readonly models: readonly string[] | null;
  /** Whether the server has log folders (`--logs`). */
  readonly hasFolders: boolean | null;
  /** Where the stream of events stands: a page that reads it from here misses nothing of what it asks for next. */
  readonly cursor: string | null;
}

/** Which data, rollouts and samples are kept: some of each step, all, none. */
export type StudioCapture = "sample" | "all" | "off";

/** `POST code` (with a key): a code that logs a page in once, within a minute. */
export interface StudioCode {
  /** Goes into the fragment: `/studio#code=…`. */
  readonly code: string;
  /** When it is of no use any more. */
  readonly expiresAt: StudioTime;
}

/** Body of `POST login`: one of the two. */
export interface StudioLogin {
  /** From the fragment. */
  readonly code?: string;
  /** From the form; not kept by the page. */
  readonly key?: string;
}

/** Answer of `POST login` and `POST renew`; sent as `Authorization: Bearer …`. */
export interface StudioToken {
  /** Good for everything the key may do, for an hour, as long as its key is. */
  readonly token: string;
  /** When it ends. */
  readonly expiresAt: StudioTime;
}
