import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visibleName } from "../text/visible.js";

/** A dialog over the page; Escape and a click beside it close it. */
export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="stack">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Asks for confirmation of an action that cannot be undone; `name`, if given, has to be typed. */
export function Confirm({
  title,
  name,
  action,
  run,
  close,
  children,
}: {
  readonly title: string;
  readonly name?: string;
  /** The label of the button. */
  readonly action: string;
  readonly run: () => Promise<unknown>;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isReady = !isBusy && (name === undefined || typed === name);
  return (
    <Dialog title={title} close={close}>
      <div>{children}</div>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isReady) return;
          setBusy(true);
          void run().then(close, close);
        }}
      >
        {name !== undefined && (
          <label class="stack">
            <span class="small muted">
              Type <bdi class="mono">{visibleName(name)}</bdi> to confirm
            </span>
            <input
              class="field mono"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        <div class="row">
          <button type="submit" class="button danger" disabled={!isReady}>
            {action}
          </button>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
