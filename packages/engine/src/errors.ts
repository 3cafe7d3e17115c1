export { EngineError, type EngineErrorCategory } from "@tinker-ts/hub/weights";
