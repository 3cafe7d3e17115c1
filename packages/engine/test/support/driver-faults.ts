import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import path from "node:path";

/** Bytes of a driver's file, as they are and as they fail. */
export interface DriverFault {
  readonly file: string;
  readonly offset: number;
  /** In hexadecimal digits. */
  readonly sound: string;
  readonly broken: string;
}

/** Ways in which a GPU fails. */
export interface DriverFaults {
  readonly lost: DriverFault;
  readonly outOfMemory: DriverFault;
}

/**
 * Where an unpacked SwiftShader must be changed to lose its device, or to have no memory left. The system shares a
 * library's pages with its file, so that writing there breaks the driver of a running process, and writing the
 * old bytes mends it.
 */
export function driverFaults(folder: string): DriverFaults {
  const file = path.join(folder, "libvk_swiftshader.so");
  const library = readFileSync(file);
  const fault = (name: string, result: number): DriverFault => {
    const offset = functionOffset(library, name);
    // mov eax, result; ret
    const broken = Buffer.from([0xb8, 0, 0, 0, 0, 0xc3]);
    broken.writeInt32LE(result, 1);
    const sound = library.subarray(offset, offset + broken.length).toString("hex");
    return { file, offset, sound, broken: broken.toString("hex") };
  };
  // VK_ERROR_DEVICE_LOST and VK_ERROR_OUT_OF_DEVICE_MEMORY.
  return { lost: fault("vkQueueSubmit", -4), outOfMemory: fault("vkAllocateMemory", -2) };
}

/** Breaks a driver, or mends it. */
export function setFault({ file, offset, sound, broken }: DriverFault, isBroken: boolean): void {
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.from(isBroken ? broken : sound, "hex"), 0, null, offset);
  closeSync(descriptor);
}

interface Section {
  readonly type: number;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

const symbolTable = 2;

/** Where a function's code lies in an ELF file of 64 bits that has a table of symbols. */
function functionOffset(library: Buffer, name: string): number {
  const sections = sectionsOf(library);
  const symbols = sections.find(({ type }) => type === symbolTable);
  const names = sections[symbols?.link ?? -1];
  if (symbols === undefined || names === undefined) throw new Error("the driver has no symbols");
  for (let at = symbols.offset; at < symbols.offset + symbols.size; at += 24) {
    const start = names.offset + library.readUInt32LE(at);
    if (library.toString("latin1", start, start + name.length + 1) !== `${name}\0`) continue;
    const home = sections[library.readUInt16LE(at + 6)];
    if (home === undefined) continue;
    return Number(library.readBigUInt64LE(at + 8)) - home.address + home.offset;
  }
  throw new Error(`the driver has no ${name}`);
}

function sectionsOf(library: Buffer): Section[] {
  const [first, size, count] = [
    Number(library.readBigUInt64LE(0x28)),
    library.readUInt16LE(0x3a),
    library.readUInt16LE(0x3c),
  ];
  return Array.from({ length: count }, (_, index) => {
    const at = first + index * size;
    return {
      type: library.readUInt32LE(at + 4),
      address: Number(library.readBigUInt64LE(at + 0x10)),
      offset: Number(library.readBigUInt64LE(at + 0x18)),
      size: Number(library.readBigUInt64LE(at + 0x20)),
      link: library.readUInt32LE(at + 0x28),
    };
  });
}
