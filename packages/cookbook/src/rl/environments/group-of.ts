import { closeQuietly } from "../rollout.js";
import type { Environment, EnvironmentGroup } from "../types.js";

/** How a group of like episodes is made. */
export interface GroupOfOptions extends Pick<
  EnvironmentGroup,
  "tags" | "rewards" | "sharesPrompt"
> {
  /** Episodes in the group. */
  readonly size: number;
  /** Makes one of them. */
  readonly make: (index: number) => Environment;
}

/** A group of episodes that know nothing of each other, for instance tries at one problem. */
export function groupOf({ size, make, ...rest }: GroupOfOptions): EnvironmentGroup {
  return {
    ...rest,
    environments: () => makeAll(size, make),
    replace: make,
  };
}

/** All or none: those that were made before one could not be made are closed. */
async function makeAll(
  size: number,
  make: (index: number) => Environment,
): Promise<readonly Environment[]> {
  const made: Environment[] = [];
  try {
    while (made.length < size) made.push(make(made.length));
    return made;
  } catch (error) {
    await Promise.all(made.map((environment) => closeQuietly(environment, error)));
    throw error;
  }
}
