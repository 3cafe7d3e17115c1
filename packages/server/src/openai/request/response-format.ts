import { invalid } from "../openai-error.js";
import type { Fields, Json } from "./fields.js";

/** The required content of an answer. */
export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly schema: Json };

/** Reads `response_format`. */
export function readResponseFormat(fields: Fields): ResponseFormat {
  const format = fields.object("response_format");
  const type = format?.choice("type", ["text", "json_object", "json_schema"]);
  if (format && type === undefined) throw invalid("response_format.type", "is missing");
  if (format === undefined || type === undefined || type === "text") return { type: "text" };
  // llama.cpp's clients put the schema beside the type.
  const beside = format.get("schema");
  if (type === "json_object") {
    return beside === undefined ? { type } : { type: "json_schema", schema: beside };
  }
  const definition = format.object("json_schema");
  const schema = definition === undefined ? beside : definition.get("schema");
  if (definition === undefined && beside === undefined) {
    throw invalid("response_format.json_schema", "is missing");
  }
  // A schema may be left out; then any object will do.
  return schema === undefined ? { type: "json_object" } : { type, schema };
}
