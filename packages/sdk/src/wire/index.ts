export { decodeJson, encodeJson } from "./json-codec.js";
export { parseJson, stringifyJson } from "./json-text.js";
export { decodeProto, encodeProto, hasProto, type ProtoTypeName } from "./proto-codec.js";
export { routes, type Pool, type RetryClass, type Route, type RouteName } from "./routes.js";
export { wireTypes, type WireInput, type WireTypeName, type WireValue } from "./wire-types.js";
export { compressZstd, decompressZstd, defaultMaxDecompressedBytes } from "./zstd.js";
export { WireError, type WireDirection } from "../errors/wire-error.js";
