import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { ApiKeys, Authenticator, credentialOf } from "./authenticator.js";
import { SignedLinks } from "./signed-links.js";

const secret = new Uint8Array(32).fill(7);
const keys = [
  { key: "tml-alice-secret", owner: "alice", email: "alice@example.org" },
  "tml-bob-secret",
];

it("knows a key by its owner and gives a bare key the same owner at every start", () => {
  const first = new ApiKeys(keys);
  expect(first.identify("tml-alice-secret")?.owner).toBe("alice");
  expect(first.identify("tml-nobody-secret")).toBeUndefined();
  const again = new ApiKeys(keys);
  expect(first.identify("tml-bob-secret")).toEqual(again.identify("tml-bob-secret"));
});

it("lets everyone in as local when no key is set", () => {
  expect(new ApiKeys([]).identify("")?.owner).toBe("local");
});

it("refuses keys that are too short to be secret", () => {
  expect(() => new ApiKeys(["short"])).toThrow("apiKeys");
});

it("accepts the token it has issued until it expires or its key goes", async () => {
  const clock = new ManualClock();
  const apiKeys = new ApiKeys(keys);
  const authenticator = new Authenticator(apiKeys, secret, clock);
  const alice = authenticator.identify("tml-alice-secret")!;
  const token = authenticator.issueToken(alice);
  expect(authenticator.identify(token)).toEqual(alice);
  const claims = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString()) as object;
  expect(claims).toMatchObject({
    sub: "urn:tinker-ts:user:alice",
    email: "alice@example.org",
    iss: "passport-tinker-ts",
  });
  const withoutAlice = new Authenticator(new ApiKeys(["tml-bob-secret"]), secret, clock);
  expect(withoutAlice.identify(token)).toBeUndefined();
  await clock.advance(3_600_001);
  expect(authenticator.identify(token)).toBeUndefined();
});

it("refuses tokens that it has not signed itself", () => {
  const authenticator = new Authenticator(new ApiKeys(keys), secret, new ManualClock());
  const token = authenticator.issueToken(authenticator.identify("tml-alice-secret")!);
  const [header, payload, signature] = token.split(".") as [string, string, string];
  const bob = new ApiKeys(keys).identify("tml-bob-secret")!;
  const forged = Buffer.from(
    JSON.stringify({ sub: "x", kid: bob.keyId, exp: 9_999_999_999 }),
  ).toString("base64url");
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  const otherSecret = createHmac("sha256", "other")
    .update(`${header}.${payload}`)
    .digest("base64url");
  for (const bad of [
    `${header}.${forged}.${signature}`,
    `${none}.${payload}.`,
    `${header}.${payload}.${otherSecret}`,
    `${header}.${payload}`,
    "eyJ",
    `${token}.more`,
  ]) {
    expect(authenticator.identify(bad)).toBeUndefined();
  }
});

it("reads the credential from X-API-Key or as a bearer token", () => {
  expect(credentialOf(new Headers({ "x-api-key": "a" }))).toBe("a");
  expect(credentialOf(new Headers({ authorization: "Bearer b" }))).toBe("b");
  expect(credentialOf(new Headers())).toBe("");
});

it("lets a signed link be followed until it expires, and only as it was signed", async () => {
  const clock = new ManualClock();
  const links = new SignedLinks(secret, clock);
  const { url } = links.sign("http://h", { kind: "archive", subject: "f" }, 60_000);
  const query = new URL(url).searchParams;
  expect(links.verify("archive", query)).toEqual({ kind: "archive", subject: "f" });
  expect(links.verify("trace", query)).toBeUndefined();
  for (const name of ["subject", "expires", "signature"]) {
    const changed = new URLSearchParams(query);
    changed.set(name, `${query.get(name)}1`);
    expect(links.verify("archive", changed)).toBeUndefined();
  }
  await clock.advance(60_001);
  expect(links.verify("archive", query)).toBeUndefined();
});
