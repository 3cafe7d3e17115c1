import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * A list of rows of one height that lives in the page's own scrolling: only rows that can be seen, and a few around
 * them, are in the document.
 */
export function VirtualList({
  count,
  rowHeight,
  children,
  active = -1,
  ...rest
}: {
  readonly count: number;
  readonly rowHeight: number;
  readonly children: (index: number) => ComponentChildren;
  /** The row with the keyboard focus: it is kept in view. */
  readonly active?: number;
} & Omit<HTMLAttributes<HTMLDivElement>, "children">) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<readonly [number, number]>([0, 30]);

  useLayoutEffect(() => {
    const measure = (): void => {
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / rowHeight) - 6);
      const last = Math.min(count, Math.ceil((top + innerHeight) / rowHeight) + 6);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count, rowHeight]);

  useLayoutEffect(() => {
    if (active < 0 || !box.current) return;
    const top = box.current.getBoundingClientRect().top + active * rowHeight;
    const margin = 96; // the bars above and below
    if (top < margin) scrollBy(0, top - margin);
    else if (top + rowHeight > innerHeight - margin)
      scrollBy(0, top + rowHeight - innerHeight + margin);
  }, [active]);

  const [first, last] = range;
  const rows: ComponentChildren[] = [];
  for (let index = first; index < Math.min(last, count); index++) rows.push(children(index));
  return (
    <div {...rest} ref={box} style={{ height: `${count * rowHeight}px`, position: "relative" }}>
      <div style={{ transform: `translateY(${first * rowHeight}px)` }} role="presentation">
        {rows}
      </div>
    </div>
  );
}
