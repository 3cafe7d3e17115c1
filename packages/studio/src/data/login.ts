import { batch, effect, signal } from "@preact/signals";
import type { StudioHello, StudioLogin, StudioToken } from "tinker-ts/wire/studio";
import { ApiFailure, call, needsLogin } from "./api.js";
import { setToken, token } from "./token.js";

const renewBeforeMs = 600_000;

/** What the server said at the door; null until it has answered. */
export const hello = signal<StudioHello | null>(null);

/** Why there is no hello: the server did not answer. */
export const helloFailure = signal<ApiFailure | null>(null);

/** Comes in: takes the code out of the fragment, asks the server who it is. */
export async function enter(): Promise<void> {
  const code = /^#code=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    await logIn({ code }).catch(() => undefined); // the form says the rest
  }
  await greet();
}

/** Logs in with a code or a key, which is not kept; `greet` opens the door then. */
export async function logIn(login: StudioLogin): Promise<void> {
  setToken(await call<StudioToken>("login", { body: login }));
}

/** Forgets the login of this tab. */
export function logOut(): void {
  setToken(null);
  location.reload();
}

/** Asks the server what it is; a page behind its version finds out here. */
export async function greet(): Promise<void> {
  try {
    const answer = await call<StudioHello>("hello");
    batch(() => {
      hello.value = answer;
      helloFailure.value = null;
      needsLogin.value = answer.needsLogin;
    });
  } catch (error) {
    if (error instanceof ApiFailure) helloFailure.value = error;
    else throw error;
  }
}

/** Renews the token before it ends. */
export function keepToken(): void {
  effect(() => {
    const value = token.value;
    if (!value) return;
    const delay = Math.max(1000, value.expiresAt - Date.now() - renewBeforeMs);
    const timer = setTimeout(() => {
      call<StudioToken>("renew").then(setToken, () => setToken(null));
    }, delay);
    return () => clearTimeout(timer);
  });
}
