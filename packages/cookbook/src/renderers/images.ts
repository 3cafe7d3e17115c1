import { ArgumentError } from "tinker-ts";
import type { ImagePiece } from "./chat-format.js";
import type { ImagePart, Message } from "./message.js";

/** Width and height of a picture, in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** The chunk of a picture for Qwen's vision models. */
export function qwenImage(part: ImagePart): ImagePiece {
  return imagePiece(part, qwenImageTokens);
}

/** The chunk of a picture for Kimi K2.5 and K2.6. */
export function kimiImage(part: ImagePart): ImagePiece {
  return imagePiece(part, kimiImageTokens);
}

/** How many positions a picture takes in Qwen's vision models: one per 32 × 32 pixels after resizing. */
export function qwenImageTokens({ width, height }: ImageSize): number {
  const [unit, fewest, most] = [32, 65_536, 16_777_216];
  const resized = (side: number) => Math.max(unit, roundHalfToEven(side / unit) * unit);
  let [h, w] = [resized(height), resized(width)];
  if (h * w > most) {
    const shrink = Math.sqrt((height * width) / most);
    h = Math.max(unit, Math.floor(height / shrink / unit) * unit);
    w = Math.max(unit, Math.floor(width / shrink / unit) * unit);
  } else if (h * w < fewest) {
    const grow = Math.sqrt(fewest / (height * width));
    h = Math.ceil((height * grow) / unit) * unit;
    w = Math.ceil((width * grow) / unit) * unit;
  }
  return (h / unit) * (w / unit);
}

/** How many positions a picture takes in Kimi K2.5 and K2.6. */
export function kimiImageTokens({ width, height }: ImageSize): number {
  const patches = (side: number) => Math.max(1, Math.floor(side / 14));
  const scale = Math.min(
    1,
    Math.sqrt(16_384 / (patches(width) * patches(height))),
    (512 * 14) / width,
    (512 * 14) / height,
  );
  const resized = (side: number) => Math.max(1, Math.floor(side * scale));
  return Math.ceil(resized(width) / 28) * Math.ceil(resized(height) / 28);
}

/** The size of a PNG or JPEG file, from its header. */
export function imageSize(bytes: Uint8Array): ImageSize & { readonly format: "png" | "jpeg" } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length >= 24 && view.getUint32(0) === 0x89504e47 && view.getUint32(12) === 0x49484452) {
    return { format: "png", width: view.getUint32(16), height: view.getUint32(20) };
  }
  if (bytes.length >= 4 && view.getUint16(0) === 0xffd8) {
    const size = jpegSize(view);
    if (size) return { format: "jpeg", ...size };
  }
  throw new ArgumentError("image", "must be the bytes of a PNG or JPEG file");
}

/** Options of fetching pictures. */
export interface LoadImagesOptions {
  /** Hosts that pictures may come from; none by default, so that messages cannot trigger requests. */
  readonly allowedHosts: readonly string[];
  /** @default the global `fetch` */
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal;
  /** Largest picture. @default 20 MiB */
  readonly maxBytes?: number;
}

/** Messages with the bytes of their pictures in place of addresses; other hosts are refused. */
export async function loadImages(
  messages: readonly Message[],
  options: LoadImagesOptions,
): Promise<Message[]> {
  return Promise.all(
    messages.map(async (message) => {
      if (typeof message.content === "string") return message;
      const content = await Promise.all(
        message.content.map(async (part) => {
          if (part.type !== "image" || typeof part.image !== "string") return part;
          if (part.image.startsWith("data:")) return part;
          return { ...part, image: await fetchImage(part.image, options) };
        }),
      );
      return { ...message, content };
    }),
  );
}

async function fetchImage(address: string, options: LoadImagesOptions): Promise<Uint8Array> {
  const { allowedHosts, maxBytes = 20 * 2 ** 20, signal } = options;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || !allowedHosts.includes(url.host)) {
    throw new ArgumentError(
      "image",
      `${address} is not an address on an allowed host (${allowedHosts.join(", ") || "none"})`,
    );
  }
  // A redirect could lead anywhere.
  const init: RequestInit = { redirect: "error", ...(signal ? { signal } : {}) };
  const response = await (options.fetch ?? fetch)(url, init);
  if (!response.ok) throw new ArgumentError("image", `${address} answered ${response.status}`);
  const bytes: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes)
      throw new ArgumentError("image", `${address} is larger than ${maxBytes} bytes`);
    bytes.push(chunk);
  }
  return Buffer.concat(bytes);
}

/** Walks the segments of a JPEG file to the one with its size. */
function jpegSize(view: DataView): ImageSize | undefined {
  let at = 2;
  while (at + 9 < view.byteLength && view.getUint8(at) === 0xff) {
    const kind = view.getUint8(at + 1);
    const isFrame = kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
    if (isFrame) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    // A fill byte, or a segment with its length.
    at += kind === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
  return undefined;
}

function imagePiece({ image }: ImagePart, countTokens: (size: ImageSize) => number): ImagePiece {
  const data = typeof image === "string" ? dataUriBytes(image) : image;
  const { format, ...size } = imageSize(data);
  return { type: "image", data, format, expectedTokens: countTokens(size) };
}

function dataUriBytes(uri: string): Uint8Array {
  const match = /^data:image\/(?:png|jpe?g);base64,(.*)$/s.exec(uri);
  if (match) return Buffer.from(match[1]!, "base64");
  throw new ArgumentError(
    "image",
    "must be bytes or a data: URI of a PNG or JPEG file; loadImages fetches addresses",
  );
}

/** As Python rounds: 12.5 to 12, 13.5 to 14. */
function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
