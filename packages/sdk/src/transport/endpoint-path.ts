import { ArgumentError } from "../errors/argument-error.js";

/** Values for a query; null, undefined and empty text are left out. */
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Fills `{name}` parameters in and appends the query. */
export function endpointPath(
  template: string,
  params: Readonly<Record<string, string>> = {},
  query?: Query,
): string {
  const path = template.includes("{")
    ? template.replace(/\{(\w+)\}/g, (_, name: string) => checkParam(name, params[name]))
    : template;
  if (!query) return path;
  const entries = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  if (entries.length === 0) return path;
  const search = new URLSearchParams(
    entries.map(([name, value]): [string, string] => [name, String(value)]),
  );
  return `${path}?${search.toString()}`;
}

// Parameters are inserted verbatim, because ids contain slashes and colons; what would change the
// meaning of the URL is therefore refused.
function checkParam(name: string, value: string | undefined): string {
  if (value === undefined || value === "") throw new ArgumentError(name, "must not be empty");
  if (!/^[\w.~!$&'()*+,;=:@/-]+$/.test(value) || value.split("/").includes("..")) {
    throw new ArgumentError(name, `${JSON.stringify(value)} cannot be part of a URL`);
  }
  return value;
}
