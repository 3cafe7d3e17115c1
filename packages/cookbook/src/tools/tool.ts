import type { ToolSpec } from "../renderers/index.js";
import type { JsonSchema, SchemaIssue, SchemaOutput, StandardSchema } from "./standard-schema.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { ArgumentError } from "tinker-ts";

/** What a tool may use while it works. */
export interface ToolContext {
  /** Aborted when the call times out or is no longer needed. */
  readonly signal: AbortSignal;
  /** What ties the result to the call; null where the model's format has nothing. */
  readonly callId: string | null;
}

/** What a tool says, and what that means for the episode. */
export class ToolReply {
  /** What the model reads. */
  readonly content: string;
  /** Whether the episode is over. */
  readonly stops: boolean;
  /** Numbers to average. */
  readonly metrics: Readonly<Record<string, number>>;

  constructor(
    content: unknown,
    options: {
      /** Whether the episode is over. @default false */
      readonly stops?: boolean | undefined;
      /** Numbers to average. */
      readonly metrics?: Readonly<Record<string, number>> | undefined;
    } = {},
  ) {
    this.content = typeof content === "string" ? content : (JSON.stringify(content) ?? "null");
    this.stops = options.stops ?? false;
    this.metrics = options.metrics ?? {};
  }
}

/** A function that a model may call. */
export interface Tool {
  /** The description for the model. */
  readonly spec: ToolSpec;
  /** Milliseconds that a call may take. @default what the caller allows */
  readonly timeoutMs?: number | undefined;
  /** Checks arguments and does the work; throws a `ToolInputError` for arguments that are not right. */
  call(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolReply>;
}

/** Arguments that a tool does not take; the model reads the message. */
export class ToolInputError extends Error {
  override readonly name = "ToolInputError";
}

interface CommonOptions {
  /** What the model calls it. */
  readonly name: string;
  /** What it does, for the model to read. */
  readonly description: string;
  /** Milliseconds that a call may take. @default what the caller allows */
  readonly timeoutMs?: number | undefined;
}

/** A tool with arguments that a schema checks and types. */
export interface TypedToolOptions<S extends StandardSchema> extends CommonOptions {
  /** Schema of the arguments: an object of zod, valibot, arktype or any library of Standard Schema. */
  readonly input: S;
  /** The same as JSON Schema. @default what the schema's own library makes of it */
  readonly parameters?: JsonSchema | undefined;
  /** Does the work. The model receives text unchanged, a `ToolReply` by its fields, other values as JSON. */
  readonly run: (input: SchemaOutput<S>, context: ToolContext) => unknown;
}

/** A tool with arguments that JSON Schema describes. */
export interface PlainToolOptions extends CommonOptions {
  /** There is no other schema. */
  readonly input?: undefined;
  /** JSON Schema of the arguments; they are checked by it. */
  readonly parameters: JsonSchema;
  /** Does the work. The model receives text unchanged, a `ToolReply` by its fields, other values as JSON. */
  readonly run: (input: Readonly<Record<string, unknown>>, context: ToolContext) => unknown;
}

/** Makes a tool of a function. */
export function defineTool<S extends StandardSchema>(options: TypedToolOptions<S>): Tool;
export function defineTool(options: PlainToolOptions): Tool;
export function defineTool(options: TypedToolOptions<StandardSchema> | PlainToolOptions): Tool {
  const { name, description, timeoutMs } = options;
  if (!/^[\w.-]{1,64}$/.test(name)) {
    throw new ArgumentError(
      "name",
      `must be 1 to 64 letters, digits, _, . or -, not ${JSON.stringify(name)}`,
    );
  }
  const parameters =
    options.parameters ?? jsonSchemaOf(name, (options as TypedToolOptions<StandardSchema>).input);
  const check = options.input ? bySchema(options.input) : byJsonSchema(parameters);
  const run = options.run as (input: unknown, context: ToolContext) => unknown;
  return {
    spec: { name, description, parameters },
    timeoutMs,
    async call(args, context) {
      const reply = await run(await check(args), context);
      return reply instanceof ToolReply ? reply : new ToolReply(reply);
    },
  };
}

type Check = (args: Readonly<Record<string, unknown>>) => unknown;

function bySchema(schema: StandardSchema): Check {
  return async (args) => {
    const result = await schema["~standard"].validate(args);
    if (result.issues) throw new ToolInputError(result.issues.map(issueText).join("; "));
    return result.value;
  };
}

function byJsonSchema(parameters: JsonSchema): Check {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  const validate = ajv.compile(parameters);
  return (args) => {
    if (validate(args)) return args;
    throw new ToolInputError(ajv.errorsText(validate.errors, { dataVar: "arguments" }));
  };
}

function issueText({ message, path = [] }: SchemaIssue): string {
  const place = path.map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  return place === "" ? message : `${place}: ${message}`;
}

/** What libraries had before the specification knew of JSON Schema. */
interface OlderConversions {
  readonly toJSONSchema?: () => JsonSchema;
  readonly toJsonSchema?: () => JsonSchema;
}

/** A schema as JSON Schema, by the conversion of its own library. */
function jsonSchemaOf(tool: string, schema: StandardSchema): JsonSchema {
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
  // It has no use for a model, and would be in every prompt.
  const { $schema: _, ...rest } = made;
  return rest;
}
