import fc from "fast-check";
import type { RealKit } from "../support/real-kit.js";
import { knownPrograms, programs, type Program } from "./programs.js";
import { World } from "./world.js";

/** Far more than any life takes, also on a machine that is busy; time in which the process stands still is none. */
const maxLifeSeconds = 180;

/** Which programs are run. */
export interface LawRun {
  readonly numRuns: number;
  readonly seed: number;
  /** A path that a failure has named: that program alone is run again and made smaller. */
  readonly path?: string | undefined;
  /** Called before each program. */
  readonly onProgram?: (done: number) => void;
}

/** Checks the law for the programs that failed once and for random ones. */
export async function checkLaw(
  kit: RealKit,
  { numRuns, seed, path, onProgram }: LawRun,
): Promise<void> {
  let done = 0;
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      onProgram?.(done++);
      await live(kit, program);
    }),
    {
      seed,
      examples: knownPrograms.map((program) => [program]),
      // Making a program smaller that fails now and then takes hours; its seed and path are reported at once.
      ...(path === undefined ? { numRuns, endOnFailure: true } : { numRuns: 1, path }),
    },
  );
}

/** Runs a program to its end; one that has none fails with what it waits for. */
async function live(kit: RealKit, program: Program): Promise<void> {
  let world: World | undefined;
  const life = async (): Promise<void> => {
    world = await World.open(kit, program);
    try {
      for (const round of program.rounds) await world.run(round);
      await world.finish();
    } finally {
      await world.close();
    }
  };
  let timer: NodeJS.Timeout | undefined;
  let seconds = 0;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setInterval(() => {
      if (++seconds < maxLifeSeconds) return;
      reject(new Error(`it has no end: ${world?.doing ?? "the server opens"}`));
    }, 1000);
  });
  await Promise.race([life(), limit]).finally(() => clearInterval(timer));
}
