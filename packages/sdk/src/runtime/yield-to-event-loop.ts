/** Lets waiting events run before a long piece of work goes on. */
export function yieldToEventLoop(): Promise<void> {
  if (typeof setImmediate !== "function") return new Promise(viaChannel);
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Browsers have no `setImmediate`, and their timers wait for four milliseconds. */
function viaChannel(resolve: () => void): void {
  const { port1, port2 } = new MessageChannel();
  const target = port1 as unknown as EventTarget & { start(): void };
  const onMessage = (): void => {
    port1.close();
    resolve();
  };
  target.addEventListener("message", onMessage, { once: true });
  target.start();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port, not a window
  port2.postMessage(null);
}
