import { TinkerError } from "tinker-ts";

/** Data that cannot be used; says where it is and what is wrong. */
export class DataError extends TinkerError {
  override readonly name: string = "DataError";
  readonly blamesUser = true;
  /** Where: a file and line, a row, a message. */
  readonly place: string | undefined;
  /** What is wrong there. */
  readonly problem: string;

  constructor(problem: string, options: { place?: string | undefined; cause?: unknown } = {}) {
    const { place, cause } = options;
    super(place === undefined ? problem : `${place}: ${problem}`, { code: "data", cause });
    this.place = place;
    this.problem = problem;
  }
}
