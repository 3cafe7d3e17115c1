export * from "./errors/index.js";
export * from "./types/index.js";
export * from "./clients/index.js";
