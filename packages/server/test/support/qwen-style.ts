import { cpSync, writeFileSync } from "node:fs";
import path from "node:path";

/** A chat template of the common kind: ChatML with tools, their results, and thoughts that can be turned off. */
export const qwenStyle = `{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>\\nCall them as <tool_call>\\n{"name": N, "arguments": A}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- if not tools or not loop.first %}
            {{- '<|im_start|>system\\n' + message.content + '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content is defined %}
            {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {%- if call.function.arguments is string %}
                {{- call.function.arguments }}
            {%- else %}
                {{- call.function.arguments | tojson }}
            {%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- else %}
        {{- raise_exception('unknown role ' + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- elif opens_thinking is defined %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}`;

const sprout = path.resolve(import.meta.dirname, "../../../engine/sprout");

/** Puts the embedded model into a folder with another template; null for none. */
export function copySprout(folder: string, template: string | null): string {
  cpSync(sprout, folder, { recursive: true });
  const config = { eos_token: "<|im_end|>", pad_token: "<|endoftext|>" };
  const chat = template === null ? {} : { chat_template: template };
  writeFileSync(path.join(folder, "tokenizer_config.json"), JSON.stringify({ ...config, ...chat }));
  return folder;
}
