/** Bytes as base64; browsers have no `Buffer`. */
export function toBase64(bytes: Uint8Array): string {
  if (typeof Buffer === "function") {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  }
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** The bytes of base64 in its plain or its URL form; the text must be valid. */
export function fromBase64(text: string): Uint8Array {
  if (typeof Buffer === "function") {
    const decoded = Buffer.from(text, "base64");
    return new Uint8Array(decoded.buffer, decoded.byteOffset, decoded.byteLength);
  }
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, ""));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}
