/** A schema that cannot be enforced exactly; it is rejected, never enforced in part. */
export class SchemaRefusal extends Error {
  override readonly name = "SchemaRefusal";
  /** Where in the schema, as a path such as `properties.age.not`. */
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${path === "" ? "the schema" : path}: ${problem}`);
    this.path = path;
  }
}
