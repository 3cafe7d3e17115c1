import { onAbort, type Cancellation } from "./cancellation.js";

/** Waits for `promise`, but no longer than until `signal` aborts; the promise itself goes on. */
export function abortable<T>(promise: PromiseLike<T>, signal?: Cancellation): Promise<T> {
  if (!signal) return Promise.resolve(promise);
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, (reason) => reject(reason));
    promise.then(
      (value) => {
        stopListening();
        resolve(value);
      },
      (error: unknown) => {
        stopListening();
        reject(error);
      },
    );
  });
}
