import { Icon } from "./icon.js";
import { say } from "./toast.js";

/** Copies a text. */
export function Copy({ text, label }: { readonly text: string; readonly label?: string }) {
  return (
    <button
      type="button"
      class={label ? "button" : "button plain square"}
      aria-label={label ?? "Copy"}
      title={label ? undefined : "Copy"}
      onClick={() => void copyText(text)}
    >
      <Icon name="copy" size={15} /> {label}
    </button>
  );
}

/** Copies a text to the clipboard and confirms it. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not allow copying on this page.", "warning"); // no https, not this machine
  }
}
