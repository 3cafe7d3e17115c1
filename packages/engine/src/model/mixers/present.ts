/** A weight or value that layers of the kind always have. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a part of the layer's mixer is missing");
  return value;
}
