import { ArgumentError } from "../errors/argument-error.js";

const prefix = "tinker://";
const folders = { training: "weights", sampler: "sampler_weights" } as const;

/** The kinds of checkpoints that have addresses. */
type AddressedType = keyof typeof folders;

/** The address of a checkpoint: `tinker://<run>/weights/<name>` or `.../sampler_weights/<name>`. */
export class CheckpointPath {
  /** The run that saved it. */
  readonly trainingRunId: string;
  /** Whether it can be trained on or only sampled from. */
  readonly checkpointType: AddressedType;
  /** The name it was saved under. */
  readonly name: string;

  constructor(parts: { trainingRunId: string; checkpointType: AddressedType; name: string }) {
    this.trainingRunId = parts.trainingRunId;
    this.checkpointType = parts.checkpointType;
    this.name = parts.name;
  }

  /** Reads a path; throws `ArgumentError` with the expected form. */
  static parse(tinkerPath: string): CheckpointPath {
    const parts = tinkerPath.startsWith(prefix) ? tinkerPath.slice(prefix.length).split("/") : [];
    const [trainingRunId, folder, name] = parts;
    const checkpointType =
      folder === folders.training ? "training" : folder === folders.sampler ? "sampler" : undefined;
    if (parts.length !== 3 || !trainingRunId || !checkpointType || !name) {
      throw new ArgumentError(
        "path",
        `${JSON.stringify(tinkerPath)} is not a checkpoint path; expected tinker://<run>/weights/<name> or tinker://<run>/sampler_weights/<name>`,
      );
    }
    return new CheckpointPath({ trainingRunId, checkpointType, name });
  }

  /** `weights/<name>` or `sampler_weights/<name>`, as the REST endpoints want it. */
  get checkpointId(): string {
    return `${folders[this.checkpointType]}/${this.name}`;
  }

  /** The whole address. */
  get tinkerPath(): string {
    return `${prefix}${this.trainingRunId}/${this.checkpointId}`;
  }

  /** The whole address. */
  toString(): string {
    return this.tinkerPath;
  }
}
