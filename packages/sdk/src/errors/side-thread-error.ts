import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/** Base of the errors of sampling in a side thread. */
export class SideThreadError extends TinkerError {
  override readonly name: string = "SideThreadError";

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "side_thread" });
  }
}

/** The side thread did not become ready. */
export class SideThreadStartError extends SideThreadError {
  override readonly name: string = "SideThreadStartError";
}

/** The side thread ended while calls were under way; a new sampling client starts a new one. */
export class SideThreadDiedError extends SideThreadError {
  override readonly name: string = "SideThreadDiedError";
}

/** A call or its result could not be handed to the other thread. */
export class SideThreadMessageError extends SideThreadError {
  override readonly name: string = "SideThreadMessageError";
}
