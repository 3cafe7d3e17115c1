import { readFileSync } from "node:fs";
import { RestClient, SamplingClient, ServiceClient, TrainingClient } from "tinker-ts";
import { expect, it } from "vitest";

const page = readFileSync(new URL("../../../docs/migration.md", import.meta.url), "utf8");

/** Methods without a Python twin; the pages of the clients have them. */
const own = new Set([
  "constructor",
  "describeServer",
  "postLogs",
  "runtime",
  "samplingSessionId",
  "stream",
  "toJSON",
  "trainingRuns",
  "uploadCheckpoint",
]);

it.each([ServiceClient, TrainingClient, SamplingClient, RestClient])(
  "every public method of %o has a line in docs/migration.md",
  (Client) => {
    const names = [
      ...Object.getOwnPropertyNames(Client.prototype),
      ...Object.getOwnPropertyNames(Client).filter(
        (name) => typeof Client[name as never] === "function",
      ),
    ];
    const missing = names.filter((name) => !own.has(name) && !page.includes(name));
    expect(missing.filter((name) => name !== "over")).toEqual([]);
  },
);

/** Public methods of Python 0.39: from its source up to about 0.33, from its documentation after that. */
const python = `
  get_server_capabilities create_lora_training_client create_training_client_from_state
  create_training_client_from_state_with_optimizer create_sampling_client create_rest_client close copy_weights
  get_console_url create_custom_loss get_telemetry
  forward forward_backward forward_backward_custom optim_step save_state load_state load_state_with_optimizer
  save_weights_for_sampler save_weights_external save_weights_and_get_sampling_client get_info get_tokenizer
  sample compute_logprobs get_base_model get_sampler_handle from_sampler_handle on_queue_state_change
  get_training_run get_training_run_by_tinker_path get_weights_info_by_tinker_path list_training_runs list_checkpoints
  list_user_checkpoints get_checkpoint_archive_url get_checkpoint_archive_url_from_tinker_path delete_checkpoint
  delete_checkpoint_from_tinker_path publish_checkpoint_from_tinker_path unpublish_checkpoint_from_tinker_path
  set_checkpoint_ttl_from_tinker_path get_session list_sessions assign_session_project export_session_trace
  get_sampler get_audit_log get_billing_usage whoami get_external_weights_urls get_current_checkpoint_storage_usage
  search_sessions search_checkpoints external_weights_upload_start external_weights_upload_finish
  get_tinker_token tinker_has_credentials raise_if_tinker_not_accessible with_provenance from_torch_sparse
`
  .trim()
  .split(/\s+/);

it("every public method of Python has a line", () => {
  expect(python.filter((name) => !new RegExp(`\\b${name}\\b`).test(page))).toEqual([]);
});
