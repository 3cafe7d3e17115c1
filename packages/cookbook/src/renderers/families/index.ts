import type { ChatFormat } from "../chat-format.js";
import type { RendererOptions } from "../registry.js";
import { llama3 } from "./llama3.js";
import { roleColon } from "./role-colon.js";

/** The formats that are built in, by the names of their renderers. */
export const builtInFormats: Readonly<Record<string, (options: RendererOptions) => ChatFormat>> = {
  role_colon: () => roleColon,
  llama3: () => llama3,
};
