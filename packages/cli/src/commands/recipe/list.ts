import { defineCommand } from "../../command.js";
import { listTitle } from "../../present/list-title.js";

/** `recipe list` */
export const command = defineCommand({
  summary:
    "Lists the recipes: methods, each shown on a task that a small model learns within minutes.",
  options: {},
  arguments: {},
  examples: ["recipe list"],
  async run({ output }) {
    const { recipes } = await import("@tinker-ts/cookbook/recipes");
    output.result({
      json: () => ({ recipes: recipes.map(({ name, summary }) => ({ name, summary })) }),
      table: () => ({
        title: listTitle("recipe", recipes.length),
        headers: ["Name", "What it does"],
        rows: recipes.map(({ name, summary }) => [name, summary]),
      }),
    });
    if (!output.isJson) output.note("Run one with: tinker-ts recipe run NAME");
  },
});
