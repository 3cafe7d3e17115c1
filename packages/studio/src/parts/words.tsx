import { visible, visibleName } from "../text/visible.js";

/** A user's name: on one line, isolated from the text direction around it. */
export function Name({ children }: { readonly children: string }) {
  return <bdi>{visibleName(children)}</bdi>;
}

/** Text of unknown origin, with its line breaks. */
export function Words({ children }: { readonly children: string }) {
  return <bdi class="words">{visible(children)}</bdi>;
}
