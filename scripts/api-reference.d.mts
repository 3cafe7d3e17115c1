/** A public name with its sentence and its signature. */
export interface PublicName {
  readonly name: string;
  readonly doc: string;
  readonly text: string;
}

/** A public entry point and its declaration file. */
export interface EntryPoint {
  readonly folder: string;
  readonly name: string;
  readonly description: string;
  readonly file: string;
}

export function entryPoints(): EntryPoint[];
export function publicNames(file: string): PublicName[];
export function withoutComments(text: string): string;
export function withSortedUnions(text: string): string;
