import { CliError } from "../errors/cli-error.js";

/** What the hub says when it refuses something, for people; other errors stay as they are. */
export function explainHub(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if ("statusCode" in error) {
    const isLogin = error.statusCode === 401 || error.statusCode === 403;
    const hint = isLogin ? " Check that the token may write." : "";
    return new CliError("The hub refused the upload.", `${error.message}${hint}`, { cause: error });
  }
  if (error.message.includes("access token")) {
    return new CliError("The token of the hub is not one.", error.message, { cause: error });
  }
  return error;
}
