/*
 * What the studio's page and the server say to each other, under `/studio/api`. Both come from this
 * repository and are of one version, so this is plain JSON with the names as they are here. Numbers that
 * JSON cannot say are words.
 */

export type * from "./studio/checkpoints.js";
export type * from "./studio/events.js";
export type * from "./studio/exhibits.js";
export type * from "./studio/login.js";
export type * from "./studio/machine.js";
export type * from "./studio/runs.js";
export type * from "./studio/steering.js";
export type * from "./studio/text-log.js";
export type * from "./studio/values.js";
export type * from "./studio/views.js";
