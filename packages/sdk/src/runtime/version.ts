/** The version of this package; a test compares it with package.json. */
export const packageVersion = "0.1.0";

/** The Python SDK version with the wire that this package speaks; servers resolve their flags from it. */
export const sdkVersion = "0.25.0";
