import { useState } from "preact/hooks";
import type { StudioCheckpoint } from "tinker-ts/wire/studio";
import { send } from "../../data/api.js";
import { connection } from "../../data/events.js";
import { link } from "../../data/location.js";
import { hello } from "../../data/login.js";
import { Command } from "../../parts/command.js";
import { Confirm, Dialog } from "../../parts/dialog.js";
import { attempt } from "../../parts/toast.js";
import { Name } from "../../parts/words.js";
import { visibleName } from "../../text/visible.js";

/** Actions on a checkpoint. */
export function Actions({
  checkpoint,
  done,
}: {
  readonly checkpoint: StudioCheckpoint;
  readonly done: () => void;
}) {
  const [dialog, setDialog] = useState<"download" | "publish" | "ttl" | "delete" | null>(null);
  const isAway = connection.value.state === "waiting";
  const { path, name, isPublic, kind } = checkpoint;
  const close = (): void => setDialog(null);
  const act = async (
    method: string,
    target: string,
    text: string,
    body?: unknown,
  ): Promise<void> => {
    await attempt(
      () => send(method, addressOf(path) + target, body === undefined ? {} : { body }),
      text,
    );
    done();
  };
  return (
    <span class="row tight actions">
      {kind === "sampler" && (
        <a
          class="button plain"
          href={link("playground", { columns: `${checkpoint.baseModel},${path}` })}
        >
          chat
        </a>
      )}
      <button type="button" class="button plain" onClick={() => setDialog("download")}>
        download
      </button>
      <button
        type="button"
        class="button plain"
        disabled={isAway}
        onClick={() => setDialog("publish")}
      >
        {isPublic ? "unpublish" : "publish"}
      </button>
      <button type="button" class="button plain" disabled={isAway} onClick={() => setDialog("ttl")}>
        ttl
      </button>
      <button
        type="button"
        class="button plain danger"
        disabled={isAway}
        onClick={() => setDialog("delete")}
      >
        delete
      </button>
      {dialog === "download" && <DownloadDialog checkpoint={checkpoint} close={close} />}
      {dialog === "publish" && (
        <Confirm
          title={isPublic ? `Unpublish ${visibleName(name)}?` : `Publish ${visibleName(name)}?`}
          action={isPublic ? "Unpublish" : "Publish"}
          {...(isPublic ? {} : { name })}
          run={() =>
            act(
              isPublic ? "DELETE" : "POST",
              "/publish",
              isPublic ? "No longer public." : "Published.",
            )
          }
          close={close}
        >
          {isPublic ? (
            <p>Current users keep their copies; new access is denied.</p>
          ) : (
            <p>
              Every user of this server can then sample from it and download it. The run's data stay
              private.
            </p>
          )}
        </Confirm>
      )}
      {dialog === "ttl" && (
        <TtlDialog
          close={close}
          set={(seconds) => act("PUT", "/ttl", "Expiry set.", { ttl_seconds: seconds })}
        />
      )}
      {dialog === "delete" && (
        <Confirm
          title={`Delete ${visibleName(name)}?`}
          action="Delete"
          name={name}
          run={() => act("DELETE", "", "Deleted.")}
          close={close}
        >
          <p>This deletes the files and cannot be undone.</p>
          {checkpoint.usedBy.length > 0 && (
            <p class="warn">
              In use by{" "}
              {checkpoint.usedBy.map((user) => (
                <span key={user} class="mono">
                  <Name>{user}</Name>{" "}
                </span>
              ))}
            </p>
          )}
        </Confirm>
      )}
    </span>
  );
}

function DownloadDialog({
  checkpoint,
  close,
}: {
  readonly checkpoint: StudioCheckpoint;
  readonly close: () => void;
}) {
  const { path, name } = checkpoint;
  const at = ` --base-url ${hello.value?.address ?? location.origin}`;
  return (
    <Dialog title={`Download ${visibleName(name)}`} close={close}>
      <div class="row">
        <button
          type="button"
          class="button main"
          onClick={() => void attempt(() => downloadArchive(path))}
        >
          PEFT archive (.tar)
        </button>
      </div>
      <p class="muted small">From the command line:</p>
      <Command>{`npx tinker-ts checkpoint download ${path}${at}`}</Command>
      <Command>{`npx tinker-ts checkpoint export ${path}${at}`}</Command>
      <Command>{`npx tinker-ts checkpoint push-hf ${path} --repo NAME${at}`}</Command>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </Dialog>
  );
}

function TtlDialog({
  set,
  close,
}: {
  readonly set: (seconds: number | null) => Promise<void>;
  readonly close: () => void;
}) {
  const [days, setDays] = useState("7");
  const number = Number(days);
  return (
    <Dialog title="Expiry" close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void set(Math.round(number * 86_400)).then(close);
        }}
      >
        <label class="choice">
          Delete in
          <input
            type="number"
            class="field knob"
            min={0}
            step="any"
            value={days}
            onInput={(event) => setDays(event.currentTarget.value)}
          />
          days
        </label>
        <div class="row">
          <button type="submit" class="button main" disabled={!(number > 0)}>
            Set
          </button>
          <button type="button" class="button" onClick={() => void set(null).then(close)}>
            Never
          </button>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The address of a checkpoint in the API: `tinker://RUN/KIND/NAME`. */
function addressOf(path: string): string {
  const [run = "", ...rest] = path.replace("tinker://", "").split("/");
  return `/api/v1/training_runs/${encodeURIComponent(run)}/checkpoints/${rest.map(encodeURIComponent).join("/")}`;
}

// The server returns a link that expires and needs no login; the browser downloads it to disk.
async function downloadArchive(path: string): Promise<void> {
  const response = await send("GET", `${addressOf(path)}/archive`);
  await response.body?.cancel();
  const anchor = document.createElement("a");
  anchor.href = response.url;
  anchor.download = `${path.split("/").at(-1)}.tar`;
  anchor.click();
}
