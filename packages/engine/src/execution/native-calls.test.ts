import { describe, expect, it } from "vitest";
import { gpuDevice } from "../gpu/device.js";
import { processor } from "./device.js";
import { runtimeError } from "./native-calls.js";

const place =
  "/onnxruntime_src/onnxruntime/core/providers/webgpu/buffer_manager.cc:641 void onnxruntime::webgpu::BufferManager::Download(WGPUBuffer, void*, size_t) const map_async_result.status == wgpu::MapAsyncStatus::Success was false. ";

// Messages of ONNX Runtime 1.30.
describe("a failure of a GPU", () => {
  it.each([
    ["no_device", "Failed to get a WebGPU adapter: No supported adapters."],
    ["device_lost", `${place}wgpu::MapAsyncStatus value: 4, message: [Device] is lost.`],
    [
      "device_out_of_memory",
      "WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.\n - While validating entries[0]",
    ],
    ["device_failed", "an unknown failure"],
  ])("is classified as %s by its message", (code, words) => {
    const error = runtimeError(new Error(words), gpuDevice());
    expect(error).toMatchObject({ code, category: "internal" });
    expect(error.message).not.toContain("onnxruntime_src");
    expect(error.message).not.toContain("\n");
  });

  it("is not assumed on the processor", () => {
    const error = runtimeError(new Error("bad allocation"), processor);
    expect(error.code).toBe("runtime_failed");
  });
});
