export type { ApiKeyOptions } from "./auth/authenticator.js";
export type { ServerLimits } from "./prices.js";
export { createLocalHandler, type LocalHandler } from "./local-handler.js";
export type { Logger, LogFields, LogLevel } from "./log/logger.js";
export type { AppOptions, WeightName } from "./options.js";
export { startServer, type RunningServer, type StartServerOptions } from "./start-server.js";
