import { useState } from "preact/hooks";
import { greet, logIn } from "../data/login.js";
import icon from "../styles/icon.svg";
import { visible } from "../text/visible.js";

/** The login of a server with keys. */
export function Login() {
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState("");
  return (
    <main class="login card">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          logIn({ key }).then(greet, (error: unknown) =>
            setFailure(error instanceof Error ? error.message : String(error)),
          );
          setKey("");
        }}
      >
        <h1 class="row">
          <img src={icon} alt="" width={24} height={24} /> Studio
        </h1>
        <p class="muted">
          This server requires an API key. <code>tinker-ts studio</code> opens this page logged in.
          You can also enter a key here: it is exchanged for a login of this tab and not stored.
        </p>
        <label class="stack">
          <span>Key</span>
          <input
            type="password"
            class="field mono"
            autocomplete="off"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        {failure && (
          <div class="notice error" role="alert">
            {visible(failure)}
          </div>
        )}
        <button type="submit" class="button main" disabled={key === ""}>
          Log in
        </button>
      </form>
    </main>
  );
}
