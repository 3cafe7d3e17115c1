import { defineCommand } from "../command.js";
import { runChecks } from "../doctor/checks.js";

const marks = { ok: "ok", warning: "warning", broken: "broken", skipped: "skipped" } as const;

/** `doctor` */
export const command = defineCommand({
  summary: "Check Node, the engine, the server and its dialect, the key and the disk.",
  details: [
    "Ends with 1 when something is broken, and says what to do about it.",
    "With --base-url URL it also shows what that server can do: what it is, endpoints that it does not have, and what it is known to leave out without a word. Nothing is made at the server.",
  ],
  options: {
    model: {
      type: "string",
      placeholder: "NAME",
      description:
        "Also check that this model loads, by the headers of its files, and plan its memory: a folder, or an id of the hub",
    },
  },
  arguments: {},
  examples: [
    "doctor",
    "doctor --model Qwen/Qwen3-0.6B",
    "doctor --base-url http://cluster:8000 --json",
  ],
  async run(context, { options }) {
    const findings = await runChecks(context, options.model);
    const { style } = context.output;
    context.output.result({
      json: () => ({ checks: findings }),
      table: () => ({
        title: "Doctor",
        headers: ["Check", "State", "Finding"],
        rows: findings.map(({ check, state, finding }) => [check, marks[state], finding]),
      }),
    });
    const troubled = findings.filter(({ remedy }) => remedy !== null);
    if (!context.output.isJson) {
      for (const { check, remedy } of troubled) {
        context.output.line(`${style.yellow(`${check}:`)} ${remedy}`);
      }
    }
    return findings.some(({ state }) => state === "broken") ? 1 : 0;
  },
});
