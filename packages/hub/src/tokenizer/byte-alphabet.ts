// Byte-level vocabularies spell each byte as one printable character: printable Latin-1 bytes as
// themselves, the other 68 as the characters from U+0100 on, in order.

/** The byte that each character of the alphabet stands for, by character code; -1 elsewhere. */
const byteOfCharacter: Int16Array = makeTable();

/** The bytes a byte-level token stands for; a token with other characters stands for its own text. */
export function byteLevelBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOfCharacter[token.charCodeAt(i)] ?? -1;
    if (byte < 0) return Buffer.from(token);
    bytes[i] = byte;
  }
  return bytes;
}

function makeTable(): Int16Array {
  const table = new Int16Array(256 + 68).fill(-1);
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    table[printable ? byte : next++] = byte;
  }
  return table;
}
