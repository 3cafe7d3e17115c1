/** Caches of windows move on by so many tokens at a time: a block of a prompt. */
const stride = 64;

/**
 * The first token of a sequence that the cache of a window still holds. It depends on the length of the sequence
 * alone: where tokens lie has an influence on rounding, and company must have none.
 */
export function heldFrom(length: number, window: number | null): number {
  if (window === null) return 0;
  return Math.floor(Math.max(0, length - window) / stride) * stride;
}

/** Places for tokens that the cache of a window needs: what is held, and a block of new ones. */
export function windowPlaces(window: number | null, capacity: number): number {
  return window === null ? capacity : Math.min(capacity, window + 2 * stride);
}
