import { EngineError } from "../errors.js";
import type { DeviceName } from "../execution/device.js";
import type { DeviceTimes } from "./device-times.js";
import type { WorkerSettings } from "../runtime/protocol.js";
import type { DeviceCheck } from "./self-check.js";
import { WorkerClient } from "../runtime/worker-client.js";

/** Values of the option `device`. */
export type DeviceChoice = DeviceName | "auto";

/** The device that an engine computes on. */
export interface EngineDevice {
  readonly name: DeviceName;
  /** Why it is this one, in words. */
  readonly reason: string;
  /** How the GPU compares with the processor; absent if none was checked or it was refused. */
  readonly check?: DeviceCheck;
  /** Duration of a pass on each, when both were timed. */
  readonly times?: DeviceTimes;
}

type Settings = Omit<WorkerSettings, "nativeCalls" | "device">;

/** A running worker and its device. */
export interface ChosenDevice {
  readonly client: WorkerClient;
  readonly device: EngineDevice;
}

/** Starts a worker on the requested device; a GPU is checked before it is used. */
export async function chosenDevice(
  choice: DeviceChoice,
  settings: Settings,
): Promise<ChosenDevice> {
  if (choice === "cpu") return onProcessor(settings, "it was asked for");
  if (choice === "gpu") return onGpu(settings);
  if (choice === "auto") return onFaster(settings);
  throw new EngineError(
    "invalid_option",
    `device is "${String(choice)}"; it must be "cpu", "gpu" or "auto".`,
  );
}

function onProcessor(
  settings: Settings,
  reason: string,
  seen: Pick<EngineDevice, "check" | "times"> = {},
): ChosenDevice {
  const client = new WorkerClient({ ...settings, device: "cpu" });
  return { client, device: { ...seen, name: "cpu", reason } };
}

/** Two threads that use WebGPU at once end the process, so that only one engine may. */
let gpuIsTaken = false;

async function onGpu(settings: Settings): Promise<ChosenDevice> {
  if (gpuIsTaken) {
    throw new EngineError(
      "device_in_use",
      'device "gpu" is in use by another engine of this process, and ONNX Runtime lets one use it at a ' +
        'time; close that engine first, or use device "cpu".',
    );
  }
  gpuIsTaken = true;
  const client = new WorkerClient({ ...settings, device: "gpu" });
  void client.exited.then(() => {
    gpuIsTaken = false;
  });
  try {
    const check = await client.call("checkDevice", null);
    return { client, device: { name: "gpu", reason: "it was asked for", check } };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** The GPU if there is one that gives the same results and is faster; else the processor. */
async function onFaster(settings: Settings): Promise<ChosenDevice> {
  let gpu: ChosenDevice | undefined;
  let times: DeviceTimes;
  try {
    gpu = await onGpu(settings);
    times = await gpu.client.call("timeDevice", null);
  } catch (error) {
    await gpu?.client.close();
    if (!(error instanceof EngineError)) throw error;
    return onProcessor(settings, error.message, gpu?.device);
  }
  const [gpuMs, cpuMs] = [times.deviceMs, times.processorMs].map(Math.round);
  const least = times.isGivenUp ? "more than " : "";
  const measured = `a pass took ${least}${gpuMs} ms on the GPU and ${cpuMs} ms on the processor`;
  if (times.deviceMs < times.processorMs) {
    return { client: gpu.client, device: { ...gpu.device, reason: measured, times } };
  }
  await gpu.client.close();
  return onProcessor(settings, measured, { ...gpu.device, times });
}
