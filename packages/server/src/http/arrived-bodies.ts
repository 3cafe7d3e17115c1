/**
 * Bodies that were there with the heads of their requests. Nearly all are small and come like this; they need
 * neither a stream nor a look at their pace.
 */
const arrived = new WeakMap<Request, Uint8Array>();

/** Notes the body of a request, if all of it has arrived. */
export function noteArrived(request: Request, body: Uint8Array | undefined): void {
  if (body) arrived.set(request, body);
}

/** The body of a request that came with its head; a copy, because connections use their memory again. */
export function arrivedBody(request: Request): Uint8Array | undefined {
  const body = arrived.get(request);
  return body && Uint8Array.prototype.slice.call(body);
}
