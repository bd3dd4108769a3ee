// Runs the module and compares its image with a file: node run.mjs MODULE FILE
import fs from "node:fs";

const [module, file] = process.argv.slice(2);
const wanted = fs.readFileSync(file);
WebAssembly.instantiate(fs.readFileSync(module)).then(({ instance }) => {
  const { memory, record } = instance.exports;
  const address = record();
  const image = Buffer.from(memory.buffer, address, wanted.length);
  const same = address !== 0 && image.equals(wanted);
  console.log(same ? "the same bytes" : "failed: other bytes than " + file);
  process.exit(same && record() === 0 ? 0 : 1);
});
