import { defineConfig } from "vite";

/** The page's own build: everything under `/studio/`, names with hashes, nothing inline that a strict CSP forbids. */
export default defineConfig({
  base: "/studio/",
  build: {
    outDir: "dist/assets",
    emptyOutDir: true,
    assetsDir: "files",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // those that know light-dark()
    reportCompressedSize: false,
  },
});
