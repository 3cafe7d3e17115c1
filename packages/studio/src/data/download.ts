import { send } from "./api.js";

/** Saves an answer of the server as a file; a plain link cannot send the login. */
export async function download(target: string, name: string): Promise<void> {
  const response = await send("GET", target);
  saveFile(await response.blob(), name);
}

/** Saves bytes or a text as a file. */
export function saveFile(content: Blob | string, name: string): void {
  const blob = typeof content === "string" ? new Blob([content], { type: "text/plain" }) : content;
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
