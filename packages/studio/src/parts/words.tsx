import { visible, visibleName } from "../text/visible.js";

/** A name that somebody chose: on one line, set apart from the direction of what is around it. */
export function Name({ children }: { readonly children: string }) {
  return <bdi>{visibleName(children)}</bdi>;
}

/** Text of unknown origin, with its line breaks. */
export function Words({ children }: { readonly children: string }) {
  return <bdi class="words">{visible(children)}</bdi>;
}
