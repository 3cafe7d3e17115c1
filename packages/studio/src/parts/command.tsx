import { Copy } from "./copy.js";

/** A command to copy. */
export function Command({ children }: { readonly children: string }) {
  return (
    <div class="command">
      <code>{children}</code>
      <Copy text={children} />
    </div>
  );
}
