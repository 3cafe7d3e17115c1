/** A record with one value per key. */
export function recordOf<T>(keys: Iterable<string>, make: (key: string) => T): Record<string, T> {
  const record: Record<string, T> = {};
  for (const key of keys) record[key] = make(key);
  return record;
}
