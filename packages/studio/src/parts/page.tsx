import { useSignal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";

/** A screen with code that is loaded when it is first shown. */
export function lazy(load: () => Promise<FunctionComponent>): FunctionComponent {
  let loaded: FunctionComponent | undefined;
  return function Lazy() {
    const state = useSignal<FunctionComponent | undefined>(loaded);
    const failed = useSignal(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => (state.value = loaded = component),
        (error: unknown) => {
          failed.value = true;
          console.error(error);
        },
      );
    }, []);
    const Screen = state.value;
    if (Screen) return <Screen />;
    if (failed.value) {
      return (
        <div class="notice error" role="alert">
          <span class="grow">
            This part of the page could not be loaded. The server may be of a newer version.
          </span>
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      );
    }
    return <Shapes count={4} />;
  };
}

/** Grey placeholders; they appear after 200 ms. */
export function Shapes({
  count,
  height = 56,
}: {
  readonly count: number;
  readonly height?: number;
}) {
  return (
    <div class="stack" aria-busy="true">
      <span class="unseen">Loading</span>
      {Array.from({ length: count }, (_, index) => (
        <div key={index} class="shape" style={{ height: `${height}px` }} />
      ))}
    </div>
  );
}
