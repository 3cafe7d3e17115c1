/** A file of the data directory is not what was written there; names it by its place in the directory. */
export class DamagedError extends Error {
  override readonly name = "DamagedError";
  readonly file: string;
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`${file} in the server's data directory ${problem}`);
    this.file = file;
    this.problem = problem;
  }
}
