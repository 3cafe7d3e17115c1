import { TinkerError, type TinkerErrorOptions } from "tinker-ts";

/** A conversation that a renderer cannot write, or a renderer that cannot be used. */
export class RendererError extends TinkerError {
  override readonly name: string = "RendererError";
  readonly blamesUser = true;

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "renderer_error" });
  }
}
