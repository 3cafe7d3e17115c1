// Regenerates test/support/generated/tinker_public_pb.ts, which tests compare our own reader and writer with, from proto/tinker_public.proto.
// The compiler is fetched on demand: nobody who only builds or tests the project needs it.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const template = {
  version: "v2",
  plugins: [
    {
      local: "protoc-gen-es",
      out: "test/support/generated",
      opt: ["target=ts", "import_extension=js", "ts_nocheck=true"],
    },
  ],
};
execFileSync(
  "npx",
  [
    "--yes",
    "--package=@bufbuild/buf@1.74.0",
    "--package=@bufbuild/protoc-gen-es@2.12.1",
    "--",
    "buf",
    "generate",
    "proto",
    "--template",
    JSON.stringify(template),
  ],
  { cwd: folder, stdio: "inherit" },
);
