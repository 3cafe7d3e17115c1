// What this package uses of the Standard Schema specification (https://standardschema.dev), which zod, valibot,
// arktype and others follow. Types alone: any schema that has this shape can be used, and none is depended upon.

/** A schema of any library that follows the specification. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** What the specification defines. */
  readonly "~standard": {
    /** The version of the specification. */
    readonly version: 1;
    /** Who made the schema. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Exists for types alone. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** The schema as JSON Schema, where its library can say that. */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema }
      | undefined;
  };
}

/** A checked value, or what is wrong with it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** Something that is wrong with a value. */
export interface SchemaIssue {
  /** What it is. */
  readonly message: string;
  /** Where it is. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema makes of a value. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;
