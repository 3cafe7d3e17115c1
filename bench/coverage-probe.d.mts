/** Executed functions by their place. */
export type Executed = Readonly<Record<string, { readonly file: string; readonly name: string }>>;

export function begin(): Promise<void>;
export function end(): Promise<Executed>;
