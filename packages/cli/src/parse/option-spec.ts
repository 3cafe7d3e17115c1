/** A kind of value that completion offers. */
export type ValueKind = "models" | "checkpoints" | "runs" | "sessions" | "files";

/** An option of a command; its key in the command's `options` is the name in camelCase. */
export interface OptionSpec {
  readonly type: "flag" | "string" | "integer" | "number";
  readonly description: string;
  /** One letter. */
  readonly short?: string;
  /** The name of the value in the help. @default the type in capitals */
  readonly placeholder?: string;
  /** The allowed values. */
  readonly choices?: readonly string[];
  /** The values that completion offers without choices. @default files, for text */
  readonly values?: readonly ValueKind[];
  /** May be given several times. */
  readonly multiple?: true;
  readonly required?: true;
  readonly default?: string | number | boolean;
  /** The minimum. */
  readonly min?: number;
  /** The maximum. */
  readonly max?: number;
}

/** Options by their names in camelCase. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type SingleValue<S extends OptionSpec> = S["type"] extends "flag"
  ? boolean
  : S extends { readonly choices: readonly (infer C)[] }
    ? C
    : S["type"] extends "string"
      ? string
      : number;

type IsAlwaysThere<S> = S extends
  | { readonly default: unknown }
  | { readonly required: true }
  | { readonly type: "flag" }
  ? true
  : false;

/** The values that options are parsed to. */
export type OptionValues<O extends OptionSpecs> = {
  readonly [K in keyof O]: O[K] extends { readonly multiple: true }
    ? readonly SingleValue<O[K]>[]
    : IsAlwaysThere<O[K]> extends true
      ? SingleValue<O[K]>
      : SingleValue<O[K]> | undefined;
};

/** A positional argument; its key in the command's `arguments` is the name in camelCase. */
export interface ArgumentSpec {
  readonly description: string;
  readonly choices?: readonly string[];
  /** The values that completion offers without choices. @default files */
  readonly values?: readonly ValueKind[];
  readonly optional?: true;
  /** Takes all that follow; only the last one may. */
  readonly multiple?: true;
}

/** Arguments in the order in which they are given. */
export type ArgumentSpecs = Readonly<Record<string, ArgumentSpec>>;

/** The values that arguments are parsed to. */
export type ArgumentValues<A extends ArgumentSpecs> = {
  readonly [K in keyof A]: A[K] extends { readonly multiple: true }
    ? readonly string[]
    : A[K] extends { readonly choices: readonly (infer C)[] }
      ? C
      : A[K] extends { readonly optional: true }
        ? string | undefined
        : string;
};

/** `--run-id` for `runId`. */
export function flagOf(name: string): string {
  return `--${kebab(name)}`;
}

/** `RUN_ID` for `runId`. */
export function placeholderOf(name: string): string {
  return kebab(name).replaceAll("-", "_").toUpperCase();
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
