/** Lets events that wait be served before going on with a long piece of work. */
export function serveEvents(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
