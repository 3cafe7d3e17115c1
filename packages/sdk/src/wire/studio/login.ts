import type { StudioTime } from "./values.js";

/** `GET hello`: the first request of the page; the only response without a login. */
export interface StudioHello {
  /** Version of the server; a page of another version offers to reload. */
  readonly version: string;
  /** Whether this caller has to log in first; if so, everything below is null. */
  readonly needsLogin: boolean;
  /** The owner of the shown data. */
  readonly owner: string | null;
  /** The server's address, for commands to copy. */
  readonly address: string | null;
  /** Which exhibits are stored. */
  readonly capture: StudioCapture | null;
  /** Names of the base models. */
  readonly models: readonly string[] | null;
  /** Whether the server has log folders (`--logs`). */
  readonly hasFolders: boolean | null;
  /** Current cursor of the event stream: a page that reads from here misses no later events. */
  readonly cursor: string | null;
}

/** Which data, rollouts and samples are stored: some of each step, all, none. */
export type StudioCapture = "sample" | "all" | "off";

/** `POST code` (with a key): a code that logs a page in once, within a minute. */
export interface StudioCode {
  /** For the fragment: `/studio#code=…`. */
  readonly code: string;
  /** When it expires. */
  readonly expiresAt: StudioTime;
}

/** Body of `POST login`: one of the two. */
export interface StudioLogin {
  /** From the fragment. */
  readonly code?: string;
  /** From the form; not stored by the page. */
  readonly key?: string;
}

/** Answer of `POST login` and `POST renew`; sent as `Authorization: Bearer …`. */
export interface StudioToken {
  /** Has the permissions of the key, for an hour, while the key is valid. */
  readonly token: string;
  /** When it expires. */
  readonly expiresAt: StudioTime;
}
