import { expect, it } from "vitest";
import { compileTemplate } from "./jinja.js";

async function render(source: string, variables: Record<string, unknown> = {}): Promise<string> {
  return (await compileTemplate(source))(variables);
}

const reasoned = "<think>\n  step one\n\n</think>\n\n  Four. \n";

// Each template has the constructs of a published one, in as few lines as they fit in; what is expected
// is the result of Jinja in Python.
const constructs: [what: string, source: string, variables: object, expected: string][] = [
  [
    "Qwen3 cuts reasoning out of a text and frames it again",
    `{%- set content = message.content %}
{%- set reasoning_content = '' %}
{%- if '</think>' in content %}
    {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
    {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{{- '<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}`,
    { message: { content: reasoned } },
    "<think>\n  step one\n</think>\n\n  Four. \n",
  ],
  [
    "Qwen3 looks from the end for the last question",
    `{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == 'user' and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{{- ns.last }}`,
    {
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "b" },
        { role: "user", content: "<tool_response>c</tool_response>" },
      ],
    },
    "0",
  ],
  [
    "Llama 3 trims texts and takes the system message off the front",
    `{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{{- system_message }}
{{- '<|eot_id|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}`,
    {
      messages: [
        { role: "system", content: " \u001cBe brief.\u0085\n" },
        { role: "user", content: "\ufeffHi \t" },
      ],
    },
    "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n\ufeffHi<|eot_id|>",
  ],
  [
    "Gemma 3 renames roles and joins parts",
    `{%- for message in messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}`,
    {
      messages: [
        { role: "user", content: [{ type: "image" }, { type: "text", text: " what? " }] },
        { role: "assistant", content: " A lamp.\n" },
      ],
    },
    "<start_of_turn>user\n<start_of_image>what?<end_of_turn>\n<start_of_turn>model\nA lamp.<end_of_turn>\n",
  ],
  [
    "SmolLM takes a mode out of the system message",
    `{%- set ns = namespace(mode='/think', custom='') %}
{%- if '/no_think' in system %}
    {%- set ns.mode = '/no_think' %}
{%- endif %}
{%- set ns.custom = system.replace('/no_think', '').replace('/think', '').rstrip() %}
{{- ns.mode + '|' + ns.custom + '|' }}
{%- generation %}{{- content.lstrip('\\n') }}{%- endgeneration %}`,
    { system: "Be brief.  /no_think ", content: "\n\n  x" },
    "/no_think|Be brief.|  x",
  ],
  [
    "Mistral strips a set of characters and refuses what it does not know",
    `{%- if (message['role'] == 'user') != (index % 2 == 0) %}
    {{- raise_exception('roles must alternate') }}
{%- endif %}
{{- '[INST]' + message['content'].strip('*_ ') + '[/INST]' + message['content'].rstrip('_*') }}`,
    { message: { role: "user", content: "** _bold_ text **" }, index: 0 },
    "[INST]bold_ text[/INST]** _bold_ text ",
  ],
  [
    "a filter with an argument, a text inside a macro and inside a literal",
    `{%- macro clean(text) %}{{- text.strip('"') }}{%- endmacro %}
{{- '--x--' | trim('-') + clean('"y"') + {'a': ' z '.strip()}['a'] + ['.q.'.lstrip('.')][0] }}`,
    {},
    "xyzq.",
  ],
  ["a word's other letters become small", "{{ 'wIDE Open'.capitalize() }}", {}, "Wide open"],
  ["whole characters are stripped, not halves", "{{ '😀a😁'.strip('😀') }}", {}, "a😁"],
];

it.each(constructs)("%s", async (_, source, variables, expected) => {
  expect(await render(source, { ...variables })).toBe(expected);
});

it("names the method without a text", async () => {
  await expect(render("{{ missing.strip('x') }}")).rejects.toThrow("strip() needs a text");
});
