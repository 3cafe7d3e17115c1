// Speed of rendering conversations, beside the tokenizer alone on the same text.
//   npm run bench:renderers -w packages/cookbook
import { parseTokenizer, type Tokenizer } from "@tinker-ts/hub";
import { getRenderer, type Message, type Renderer } from "@tinker-ts/cookbook/renderers";

const entries = 150_000;
const conversations = 40;
const rounds = 5;

const random = makeRandom(1);
const words = Array.from({ length: 60_000 }, makeWord);
const tokenizer = await makeTokenizer();
const data = Array.from({ length: conversations }, makeConversation);

console.log(
  `byte-level BPE of ${tokenizer.vocabSize} entries, one core, CPU time, best of ${rounds}`,
);
for (const name of ["qwen3", "qwen3_5", "nemotron3", "chat_template"]) {
  report(name, await getRenderer(name, tokenizer));
}

function report(name: string, renderer: Renderer): void {
  const mode = "all_assistant_messages";
  const rendered = data.map((messages) => renderer.buildSupervisedExample(messages, mode));
  const texts = rendered.map(({ input }) => tokenizer.decode(input.toInts()));
  const tokens = rendered.reduce((sum, { input }) => sum + input.length, 0);
  // In turns, so that both see the same machine.
  let [alone, whole] = [Infinity, Infinity];
  for (let round = 0; round < rounds; round++) {
    alone = Math.min(
      alone,
      cpuMs(() => {
        for (const text of texts) tokenizer.encode(text, { addSpecialTokens: false });
      }),
    );
    whole = Math.min(
      whole,
      cpuMs(() => {
        for (const messages of data) renderer.buildSupervisedExample(messages, mode);
      }),
    );
  }
  const perSecond = (ms: number) => `${((tokens / ms) * 1e-3).toFixed(2)} M tokens/s`;
  console.log(
    `${name.padEnd(14)} rendering ${perSecond(whole)}, tokenizer alone ${perSecond(alone)}, ` +
      `ratio ${(alone / whole).toFixed(2)} (at least 0.80)`,
  );
}

function cpuMs(action: () => void): number {
  const start = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** Bytes, marks, and words grown letter by letter until the vocabulary is full. */
async function makeTokenizer(): Promise<Tokenizer> {
  const letters = Array.from({ length: 256 }, (_, byte) => byteCharacter(byte));
  const vocab = new Map(letters.map((letter, index) => [letter, index]));
  const merges: string[] = [];
  for (const word of words) {
    for (const start of ["Ġ", ""]) {
      const spelled = start + word;
      for (let end = 2; end <= spelled.length && vocab.size < entries; end++) {
        const piece = spelled.slice(0, end);
        if (vocab.has(piece)) continue;
        merges.push(`${piece.slice(0, -1)} ${piece.slice(-1)}`);
        vocab.set(piece, vocab.size);
      }
    }
  }
  const marks = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
  ];
  const tags = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
  ];
  const pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  return parseTokenizer({
    tokenizer: {
      model: { type: "BPE", vocab: Object.fromEntries(vocab), merges },
      added_tokens: [...marks, ...tags].map((content, index) => ({
        id: vocab.size + index,
        content,
        special: marks.includes(content),
        normalized: false,
      })),
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: [
          { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
          { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
        ],
      },
      decoder: { type: "ByteLevel" },
    },
    config: {
      eos_token: "<|im_end|>",
      chat_template:
        "{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}",
    },
  });
}

/** Two to four turns of some hundred words; as in a language, few words make up most of a text. */
function makeConversation(): Message[] {
  return Array.from({ length: 4 + 2 * (random() % 3) }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: Array.from({ length: 40 + (random() % 300) }, () => {
      const rank = Math.floor(words.length ** ((random() % 10_000) / 10_000));
      return random() % 50 === 0 ? makeWord() : words[rank]!;
    }).join(" "),
  }));
}

function makeWord(): string {
  const length = 2 + (random() % 7);
  return Array.from({ length }, () => String.fromCharCode(97 + (random() % 26))).join("");
}

function byteCharacter(byte: number): string {
  const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  if (isPrintable) return String.fromCharCode(byte);
  const hidden = Array.from({ length: byte }, (_, before) => before).filter(
    (other) => !((other >= 0x21 && other <= 0x7e) || (other >= 0xa1 && other !== 0xad)),
  );
  return String.fromCharCode(256 + hidden.length);
}

/** Whole numbers that are the same in every run. */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}
