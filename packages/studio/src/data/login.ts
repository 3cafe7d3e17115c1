import { batch, effect, signal } from "@preact/signals";
import type { StudioHello, StudioLogin, StudioToken } from "tinker-ts/wire/studio";
import { ApiFailure, call, needsLogin } from "./api.js";
import { setToken, token } from "./token.js";

const renewBeforeMs = 600_000;

/** The server's hello; null until it has answered. */
export const hello = signal<StudioHello | null>(null);

/** The failure if there is no hello. */
export const helloFailure = signal<ApiFailure | null>(null);

/** Logs in with the code of the fragment, if any, and requests the server's hello. */
export async function enter(): Promise<void> {
  const code = /^#code=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    await logIn({ code }).catch(() => undefined); // the form shows the rest
  }
  await greet();
}

/** Logs in with a code or a key, which is not kept; call `greet` afterwards. */
export async function logIn(login: StudioLogin): Promise<void> {
  setToken(await call<StudioToken>("login", { body: login }));
}

/** Drops the login of this tab. */
export function logOut(): void {
  setToken(null);
  location.reload();
}

/** Requests the server's hello; an outdated page notices a newer version here. */
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
