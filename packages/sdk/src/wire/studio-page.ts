/*
 * What the studio's page needs at run time, as an entry point of its own: the page carries these few lines and not
 * the codecs of the API.
 */
export { studioRoutes, type StudioRouteName } from "./studio-routes.js";
export { readStudioSeries, type StudioColumn, type StudioSeries } from "./studio-series.js";
export type * from "./studio.js";
