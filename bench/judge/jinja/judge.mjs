// Runs chat templates for main.go. First it writes a line of JSON with the templates;
// then it reads a line for each request, {"template":0,"variables":{...}}, and answers
// with a line: {}, {"raised":"..."} if the template refuses the request, or
// {"failed":"..."} if it does not run.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Template } from "@huggingface/jinja";

// The package does not export its list, which is a literal in its source.
const root = dirname(createRequire(import.meta.url).resolve("@huggingface/ollama-utils"));
const source = readFileSync(join(root, "..", "src", "chat-template-automap.ts"), "utf8");
const list = new Function("return " + source.slice(source.indexOf("= [") + 2))();

const templates = list.filter((t) => t.gguf.includes("raise_exception("));
process.stdout.write(JSON.stringify(templates.map((t) => ({ name: t.model, text: t.gguf }))) + "\n");
const parsed = templates.map((t) => new Template(t.gguf));

for await (const line of createInterface({ input: process.stdin })) {
  const { template, variables } = JSON.parse(line);
  let answer = {};
  try {
    parsed[template].render(variables);
  } catch (e) {
    // What a template raises is an error like any other, with words of the template.
    answer = templates[template].gguf.includes(e.message) ? { raised: e.message } : { failed: String(e.message) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
