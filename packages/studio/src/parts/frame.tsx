import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { now } from "../data/clock.js";
import { connection } from "../data/events.js";
import { useKeys } from "../data/keys.js";
import { go, link, place, queryValue, setQuery } from "../data/location.js";
import { hello, logOut } from "../data/login.js";
import { theme, type Theme } from "../data/settings.js";
import { token } from "../data/token.js";
import icon from "../styles/icon.svg";
import { span } from "../text/times.js";
import { Banners } from "./banners.js";
import { Icon, type IconName } from "./icon.js";
import { keysDialogOpen, KeysDialog } from "./keys-dialog.js";
import { Toasts } from "./toast.js";
import { ViewsDialog } from "./views-dialog.js";

const screens: readonly { path: string; name: string; icon: IconName; key: string }[] = [
  { path: "", name: "Runs", icon: "runs", key: "r" },
  { path: "compare", name: "Compare", icon: "compare", key: "c" },
  { path: "playground", name: "Playground", icon: "playground", key: "p" },
  { path: "checkpoints", name: "Checkpoints", icon: "checkpoints", key: "k" },
  { path: "machine", name: "Machine", icon: "machine", key: "m" },
];

const searched = queryValue("q");
const themes: readonly Theme[] = ["system", "light", "dark"];

/** The frame of a screen: navigation, search, connection, theme. */
export function Frame({ children }: { readonly children: ComponentChildren }) {
  const search = useRef<HTMLInputElement>(null);
  const [areViewsOpen, setViewsOpen] = useState(false);
  useKeys([
    ...screens.map(({ path, name, key }) => ({
      keys: `g ${key}`,
      does: `go to ${name}`,
      run: () => go(link(path)),
    })),
    { keys: "/", does: "search", run: () => search.current?.focus() },
    { keys: "v", does: "named views", run: () => setViewsOpen(true) },
    { keys: "?", does: "show all shortcuts", run: () => (keysDialogOpen.value = true) },
  ]);
  const { path } = place.value;
  const isHere = (target: string): boolean =>
    target === "" ? path === "" || path.startsWith("runs/") : path === target;
  const nextTheme = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
  return (
    <div class="frame">
      <nav aria-label="Screens">
        <a class="brand" href={link("")}>
          <img src={icon} alt="" /> Studio
        </a>
        {screens.map(({ path: target, name, icon: sign }) => (
          <a
            key={target}
            class="item"
            href={link(target)}
            aria-current={isHere(target) ? "page" : undefined}
          >
            <Icon name={sign} /> {name}
          </a>
        ))}
        <div class="foot">
          {token.value && (
            <button type="button" class="button plain" onClick={logOut}>
              Log out
            </button>
          )}
          <div>tinker-ts {hello.value?.version}</div>
        </div>
      </nav>
      <header class="top">
        <form
          class="search"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            search.current?.blur();
          }}
        >
          <input
            ref={search}
            type="search"
            class="field"
            style={{ width: "100%" }}
            placeholder="Search runs   /"
            aria-label="Search runs: words, model:…, state:…, tag:…, lr>1e-4"
            value={path === "" ? searched.value : ""}
            onInput={(event) => {
              const q = event.currentTarget.value;
              if (path === "") setQuery({ q: q || null });
              else if (q) go(link("", { q }));
            }}
            onKeyDown={(event) => {
              if (event.key === "Escape") search.current?.blur();
            }}
          />
        </form>
        <ConnectionDot />
        <button
          type="button"
          class="button plain square"
          aria-label="Views"
          title="Named views (v)"
          onClick={() => setViewsOpen(true)}
        >
          <Icon name="views" />
        </button>
        <button
          type="button"
          class="button plain square"
          aria-label={`Theme: ${theme.value}. Change to ${nextTheme}`}
          title={`Theme: ${theme.value}`}
          onClick={() => (theme.value = nextTheme)}
        >
          <Icon name={theme.value} />
        </button>
        <button
          type="button"
          class="button plain square"
          aria-label="Keys"
          title="Shortcuts (?)"
          onClick={() => (keysDialogOpen.value = true)}
        >
          ?
        </button>
      </header>
      <main class="screen" id="main">
        <Banners />
        {children}
      </main>
      <Toasts />
      {areViewsOpen && <ViewsDialog close={() => setViewsOpen(false)} />}
      {keysDialogOpen.value && <KeysDialog />}
    </div>
  );
}

function ConnectionDot() {
  const state = connection.value;
  if (state.state === "live") return <Dot kind="live">live</Dot>;
  if (state.state === "connecting") return <Dot kind="">connecting</Dot>;
  if (state.state === "asleep") return <Dot kind="">asleep</Dot>;
  const lostFor = now.value - state.since;
  const wait = Math.max(0, Math.ceil((state.retryAt - now.value) / 1000));
  const text = lostFor > 30_000 ? `offline for ${span(lostFor)}` : `reconnecting in ${wait} s`;
  return <Dot kind="waiting">{text}</Dot>;
}

function Dot({ kind, children }: { readonly kind: string; readonly children: string }) {
  return (
    <span class={`dot ${kind}`} data-testid="connection">
      {children}
    </span>
  );
}
