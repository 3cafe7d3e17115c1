import { render } from "preact";
import { useEffect } from "preact/hooks";
import { needsLogin } from "./data/api.js";
import { followEvents } from "./data/events.js";
import { followKeys } from "./data/keys.js";
import { followHistory, segments } from "./data/location.js";
import { enter, greet, hello, helloFailure, keepToken } from "./data/login.js";
import { followRuns } from "./data/runs.js";
import { followTheme } from "./data/settings.js";
import { Failure } from "./parts/failure.js";
import { Frame } from "./parts/frame.js";
import { Login } from "./parts/login.js";
import { lazy } from "./parts/page.js";
import { Overview } from "./screens/overview/overview.js";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/frame.css";

const RunScreen = lazy(async () => (await import("./screens/run/run.js")).RunScreen);
const Compare = lazy(async () => (await import("./screens/compare/compare.js")).Compare);
const Playground = lazy(
  async () => (await import("./screens/playground/playground.js")).Playground,
);
const Checkpoints = lazy(
  async () => (await import("./screens/checkpoints/checkpoints.js")).Checkpoints,
);
const Embed = lazy(async () => (await import("./screens/embed/embed.js")).Embed);
const Machine = lazy(async () => (await import("./screens/machine/machine.js")).Machine);

function App() {
  useEffect(() => {
    if (helloFailure.value === null) return;
    const timer = setInterval(() => void greet(), 2000);
    return () => clearInterval(timer);
  }, [helloFailure.value]);
  if (needsLogin.value) return <Login />;
  if (hello.value === null) {
    return helloFailure.value ? (
      <main class="login">
        <Failure failure={helloFailure.value} what="the studio" retry={() => void greet()} />
      </main>
    ) : null;
  }
  if (segments.value[0] === "embed") return <Embed />;
  return (
    <Frame>
      <Screen />
    </Frame>
  );
}

function Screen() {
  const [screen = "", id = ""] = segments.value;
  if (screen === "") return <Overview />;
  if (screen === "runs" && id) return <RunScreen key={id} />;
  if (screen === "compare") return <Compare />;
  if (screen === "playground") return <Playground />;
  if (screen === "checkpoints") return <Checkpoints />;
  if (screen === "machine") return <Machine />;
  return (
    <div class="stack">
      <h1>Page not found</h1>
      <p>
        <a href="/studio">Go to Runs</a>
      </p>
    </div>
  );
}

followTheme();
followHistory();
followKeys();
followRuns();
followEvents();
keepToken();
render(<App />, document.getElementById("app")!);
void enter();
