import path from "node:path";
import type { Check, JudgedResult, Recipe } from "@tinker-ts/cookbook/recipes";
import { defineCommand, type CommandContext } from "../../command.js";
import { orLocal } from "../../connect/or-local.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { closest } from "../../parse/closest.js";
import { Interrupted } from "../../terminal/interrupted.js";
import { programCall } from "../../terminal/program-call.js";
import { formatSeconds } from "../../training/estimate.js";
import { liveSink } from "../../training/live-sink.js";

/** `recipe run` */
export const command = defineCommand({
  summary: "Run a recipe and check its results; the exit code is 1 when a check fails.",
  details: [
    "Without a server and a key, the engine in this process trains the embedded model.",
    "The same command resumes an interrupted recipe.",
  ],
  options: {
    model: {
      type: "string",
      short: "m",
      placeholder: "NAME",
      values: ["models", "files"],
      default: "tinker-ts/sprout",
      description: "Model to train; the checks are for the default one",
    },
    maxSteps: {
      type: "integer",
      min: 1,
      description: "Maximum number of steps of every run, for a trial",
    },
    seed: {
      type: "integer",
      default: 0,
      description: "Random seed for sampling and initial weights",
    },
    output: {
      type: "string",
      short: "o",
      placeholder: "DIR",
      description: "Parent of the folders of its runs; runs/recipes/NAME by default",
    },
  },
  arguments: { name: { description: "Name of a recipe ('recipe list' shows them)" } },
  examples: ["recipe run sums", "recipe run sums --seed 1 --output runs/second-try"],
  async run(given, { arguments: { name }, options }) {
    const recipe = await findRecipe(name);
    const context = orLocal(given);
    const { output, signal, terminal } = context;
    const { cwd } = terminal;
    const folder = path.resolve(cwd, options.output ?? path.join("runs", "recipes", name));
    output.note(`${output.style.bold(recipe.summary)}\n${recipe.teaches}\n`);
    try {
      const result = await withService(context, async ({ service }) => {
        const { runRecipe } = await import("@tinker-ts/cookbook/recipes");
        const { consoleSink } = await import("tinker-ts/run-log");
        return runRecipe(recipe, {
          ...options,
          service,
          folder,
          signal,
          say: (text) => output.note(text),
          show: (totalSteps) => liveSink(context, consoleSink, totalSteps),
        });
      });
      printResult(context, recipe, result, folder);
      return result.holds ? 0 : 1;
    } catch (error) {
      if (!(signal.reason instanceof Interrupted)) throw error;
      output.note(`Stopped. Finished steps are in ${folder}; the same command resumes.`);
      return signal.reason.exitCode;
    }
  },
});

async function findRecipe(name: string): Promise<Recipe> {
  const { loadRecipe, recipes } = await import("@tinker-ts/cookbook/recipes");
  const names = recipes.map((one) => one.name);
  if (names.includes(name)) return loadRecipe(name);
  const near = closest(name, names);
  throw new CliError(
    `There is no recipe '${name}'.${near === undefined ? "" : ` Did you mean '${near}'?`}`,
    "See them with 'tinker-ts recipe list'.",
  );
}

function printResult(
  { output, globals, terminal }: CommandContext,
  { name }: Recipe,
  { checks, failed, holds, seconds, samplerPath }: JudgedResult,
  folder: string,
): void {
  output.result({
    json: () => ({
      recipe: name,
      holds,
      seconds,
      folder,
      sampler_path: samplerPath,
      checks: checks.map(({ what, value, atLeast, atMost, unit = "share" }) => {
        return { what, value, at_least: atLeast, at_most: atMost, unit };
      }),
    }),
    table: () => ({
      title: `${name}: ${holds ? "all checks pass" : `${failed.length} of ${checks.length} checks fail`}, ${formatSeconds(seconds)}`,
      headers: ["Measured", "Value", "Expected", ""],
      rows: checks.map((check) => [
        check.what,
        show(check, check.value),
        wanted(check),
        failed.includes(check) ? "✗" : wanted(check) === "" ? "" : "✓",
      ]),
    }),
  });
  if (output.isJson || samplerPath === undefined) return;
  const where = globals.baseUrl === undefined ? "" : ` --base-url ${globals.baseUrl}`;
  const program = programCall(terminal.env);
  output.line(`\nRuns: ${folder}\n\nWhat next:\n  ${program} chat --model ${samplerPath}${where}`);
}

function wanted(check: Check): string {
  const { atLeast, atMost } = check;
  const bounds = [
    ...(atLeast === undefined ? [] : [`at least ${show(check, atLeast)}`]),
    ...(atMost === undefined ? [] : [`at most ${show(check, atMost)}`]),
  ];
  return bounds.join(", ");
}

function show({ unit = "share" }: Check, value: number): string {
  return unit === "share" ? `${(value * 100).toFixed(1)} %` : value.toPrecision(4);
}
