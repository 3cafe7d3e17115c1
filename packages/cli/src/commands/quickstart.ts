import { defineCommand } from "../command.js";
export const command = defineCommand({ summary: "", options: {}, arguments: {}, async run() {} });
