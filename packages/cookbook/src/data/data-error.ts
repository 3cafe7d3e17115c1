import { TinkerError } from "tinker-ts";

/** An error of the data, with its place. */
export class DataError extends TinkerError {
  override readonly name: string = "DataError";
  readonly blamesUser = true;
  /** The place: a file and line, a row, a message. */
  readonly place: string | undefined;
  /** The problem without its place. */
  readonly problem: string;

  constructor(problem: string, options: { place?: string | undefined; cause?: unknown } = {}) {
    const { place, cause } = options;
    super(place === undefined ? problem : `${place}: ${problem}`, { code: "data", cause });
    this.place = place;
    this.problem = problem;
  }
}
