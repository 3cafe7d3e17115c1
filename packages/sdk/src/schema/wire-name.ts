const cache = new Map<string, string>();

/** The wire name of a public name: `maxTokens` is `max_tokens`. */
export function wireNameOf(name: string): string {
  let wireName = cache.get(name);
  if (wireName === undefined) {
    wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    cache.set(name, wireName);
  }
  return wireName;
}
