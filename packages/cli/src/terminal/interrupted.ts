import { constants } from "node:os";

/** Why a command was asked to end: the signal that the process got. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signalName: "SIGINT" | "SIGTERM";

  constructor(signalName: "SIGINT" | "SIGTERM") {
    super(`ended by ${signalName}`);
    this.signalName = signalName;
  }

  /** 128 and the number of the signal, as shells have it: 130 for Ctrl-C. */
  get exitCode(): number {
    return 128 + constants.signals[this.signalName];
  }
}
