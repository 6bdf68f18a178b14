// Reads a folder of test vectors: yields every case with its inputs, parameters and expected arrays.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { read } from "./bytes.mjs";

export function* vectors(folder) {
  const { format, cases } = JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
  if (format !== 1) throw new Error(`format 1 is read here, and this is format ${format}`);
  const files = new Map();
  for (const one of cases) {
    if (!files.has(one.file)) files.set(one.file, readFileSync(join(folder, one.file)));
    const file = files.get(one.file);
    const start = 8 + Number(file.readBigUInt64LE(0)); // of a safetensors file
    const header = JSON.parse(file.toString("utf8", 8, start));
    const array = ({ tensor, dtype, shape }) => {
      const [from, to] = header[tensor].data_offsets;
      return read(dtype, shape, file.subarray(start + from, start + to));
    };
    const parameters = Object.entries(one.parameters).map(([name, entry]) => [name, array(entry)]);
    yield {
      ...one,
      inputs: one.inputs.map((input) => ("tensor" in input ? array(input) : input.value)),
      parameters: Object.fromEntries(parameters),
      expected: one.expected.map((entry) => ({
        ...entry,
        ...array(entry),
        judged: entry.judged && array(entry.judged),
      })),
    };
  }
}

// The largest error as a share of what is allowed: at most 1 where the array is right.
export function share(found, expected) {
  if (`${found.shape}` !== `${expected.shape}`) return Infinity;
  const rows = expected.judged?.data ?? [1];
  const width = expected.data.length / rows.length;
  let worst = 0;
  for (let i = 0; i < expected.data.length; i++) {
    const [is, should] = [found.data[i], expected.data[i]];
    if (!rows[Math.floor(i / width)] || is === should || (is !== is && should !== should)) continue;
    const allowed = expected.absolute + expected.relative * Math.abs(should);
    const off = Math.abs(is - should) / allowed;
    worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
  }
  return worst;
}
