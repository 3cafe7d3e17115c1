// File helpers shared by this repository's packages. They are not meant for others: names here change
// without a new major version.
export { ArrivingFile, type FileAnswer } from "./arriving-file.js";
export { writeFileAtomically, writeFolderAtomically } from "./atomic.js";
export {
  isMissing,
  isObject,
  parseJson,
  readJsonObject,
  readJsonObjectIfPresent,
  type JsonObject,
} from "./json.js";
export { JsonFields, type MakeError } from "./json-fields.js";
export { isFile, isFolder } from "./paths.js";
export { parseWeightIndex, singleWeightsFile, weightIndexFile } from "./weight-index.js";
