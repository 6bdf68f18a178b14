// Judges the port by a folder of test vectors: node check.mjs FOLDER

import { attention, layerNorm, multiHeadAttention, positionalEncoding } from "./transformer.mjs";
import { share, vectors } from "./vectors.mjs";

const CALLS = {
  attention: (one) => attention(...one.inputs),
  multi_head_attention: (one) => [multiHeadAttention(one.parameters, one.sizes.heads, ...one.inputs)],
  layer_norm: (one) => [layerNorm(one.parameters, one.choices.norm_epsilon ?? 1e-5, ...one.inputs)],
  positional_encoding: (one) => [positionalEncoding(...one.inputs)],
};

// The options that are implemented beside the paper's.
const OPTIONS = {
  norm_epsilon: () => true,
  projection_bias: () => true,
  fully_masked_row: (option) => option === "nan",
};

const implemented = (one) =>
  one.component in CALLS &&
  Object.entries(one.choices).every(([name, option]) => OPTIONS[name]?.(option) ?? false);

const count = { right: 0, wrong: 0, "not implemented": 0 };
for (const one of vectors(process.argv[2])) {
  if (!implemented(one)) {
    count["not implemented"]++;
    continue;
  }
  const found = CALLS[one.component](one);
  const worst = Math.max(...found.map((array, number) => share(array, one.expected[number])));
  count[worst <= 1 ? "right" : "wrong"]++;
  if (!(worst <= 1)) console.log(`${one.name}: ${worst.toPrecision(2)} times the bound (${one.clause})`);
}
console.log(Object.entries(count).map(([what, number]) => `${number} ${what}`).join(", "));
process.exit(count.wrong || !count.right ? 1 : 0);
