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
    environments: () => Array.from({ length: size }, (_, index) => make(index)),
    replace: make,
  };
}
