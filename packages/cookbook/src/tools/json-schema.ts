import { ArgumentError } from "tinker-ts";
import type { JsonSchema, StandardSchema } from "./standard-schema.js";

/** What libraries had before the specification knew of JSON Schema. */
interface OlderConversions {
  readonly toJSONSchema?: () => JsonSchema;
  readonly toJsonSchema?: () => JsonSchema;
}

/** A schema as JSON Schema, by the conversion of its own library. */
export function jsonSchemaOf(tool: string, schema: StandardSchema): JsonSchema {
  const { vendor, jsonSchema } = schema["~standard"];
  const older = schema as OlderConversions;
  const made =
    jsonSchema?.input({ target: "draft-2020-12" }) ??
    older.toJSONSchema?.() ??
    older.toJsonSchema?.();
  if (!made) {
    throw new ArgumentError(
      `tools.${tool}.parameters`,
      `is needed: a schema of ${vendor} does not say what it is as JSON Schema`,
    );
  }
  // It tells a model nothing, and would stand in every prompt.
  const { $schema: _, ...rest } = made;
  return rest;
}
