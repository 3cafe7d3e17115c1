import type { Runtime } from "../runtime/runtime.js";

/** The two forms of large messages: protobuf, or JSON for servers without it. */
export type Dialect = "proto" | "json";

/** How a client chooses: by the answers of the server, or by its options. */
export type DialectOption = "auto" | Dialect;

/**
 * Which form this server wants, as far as it is known.
 *
 * - A server without the configuration endpoint is older than protobuf.
 * - A result in JSON where protobuf was offered indicates a JSON server, as long as no protobuf body
 *   has been accepted.
 * - A body that is refused for its form (415, 422) is sent once more in the other form; the one that
 *   is accepted is settled on.
 */
export class DialectChoice {
  readonly #runtime: Runtime;
  current: Dialect;
  /** True once no answer changes it any more. */
  isSettled: boolean;

  constructor(option: DialectOption, runtime: Runtime) {
    this.#runtime = runtime;
    this.current = option === "json" ? "json" : "proto";
    this.isSettled = option !== "auto";
  }

  /** A hint, not proof: later evidence may say otherwise. */
  hint(dialect: Dialect, reason: string): void {
    if (!this.isSettled) this.#choose(dialect, reason);
  }

  /** The server accepted a body in this form. */
  settle(dialect: Dialect): void {
    if (this.isSettled) return;
    this.#choose(dialect, "the server accepted a body in this form");
    this.isSettled = true;
  }

  #choose(dialect: Dialect, reason: string): void {
    if (dialect === this.current) return;
    this.current = dialect;
    this.#runtime.logger.info(`speaking ${dialect} to this server: ${reason}`);
    this.#runtime.events.emit({ type: "dialect", dialect, reason });
  }
}
