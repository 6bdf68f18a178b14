// The port as a backend: one line of JSON comes in, one goes out; see the stdio protocol.

import { createInterface } from "node:readline";
import { read, write } from "./bytes.mjs";
import { attention, layerNorm, multiHeadAttention, positionalEncoding } from "./transformer.mjs";

const EPSILON = 1e-5;
const parts = new Map();
let built = 0;

const NORM = ({ d_model }) => ({ gain: [d_model], bias: [d_model] });
const HEADS = ({ d_model }) =>
  Object.fromEntries(["query", "key", "value", "output"].map((name) => [`${name}.weight`, [d_model, d_model]]));

const COMPONENTS = {
  attention: { call: (part, ...inputs) => attention(...inputs) },
  multi_head_attention: {
    shapes: HEADS,
    call: ({ parameters, sizes }, ...inputs) => multiHeadAttention(parameters, sizes.heads, ...inputs),
    check: ({ d_model, heads }) => {
      if (heads < 1 || d_model % heads) {
        throw refusal("value", `A width of ${d_model} cannot be divided among ${heads} heads.`);
      }
    },
  },
  layer_norm: { shapes: NORM, call: ({ parameters }, x) => layerNorm(parameters, EPSILON, x) },
  positional_encoding: { call: (part, x) => positionalEncoding(x) },
};

const REQUESTS = {
  start: () => ({ protocol: 1 }),
  describe: () => ({
    name: "javascript",
    title: "a port in plain JavaScript, without a library",
    components: Object.keys(COMPONENTS),
    choices: { norm_epsilon: EPSILON },
    limits: { precisions: ["float64", "float32"], dropout: false },
    capabilities: ["mode"],
  }),
  build: ({ component, sizes, precision }) => {
    const { shapes = () => ({}), check = () => {} } = COMPONENTS[component];
    check(sizes);
    parts.set(++built, { component, sizes, precision, shapes: shapes(sizes), parameters: random(shapes(sizes)) });
    return { part: built };
  },
  load: ({ part, parameters }) => {
    const { shapes } = parts.get(part);
    const names = [...new Set([...Object.keys(shapes), ...Object.keys(parameters)])];
    for (const name of names) {
      const found = name in parameters ? parameters[name].shape : "nothing";
      const wanted = name in shapes ? shapes[name] : "nothing";
      if (`${found}` !== `${wanted}`) {
        throw refusal("value", `${name} should be ${wanted} and is ${found}.`);
      }
    }
    parts.get(part).parameters = mapped(parameters, decoded);
    return {};
  },
  export: ({ part }) => {
    const { parameters, precision } = parts.get(part);
    return { parameters: mapped(parameters, (one) => encoded(precision, one)) };
  },
  call: ({ part, inputs }) => {
    const held = parts.get(part);
    const given = inputs.map((one) => (one && typeof one === "object" ? decoded(one) : one));
    const found = [COMPONENTS[held.component].call(held, ...given)].flat();
    return { outputs: found.map((one) => encoded(held.precision, one)) };
  },
  train: () => ({}), // there is no dropout
  eval: () => ({}),
  release: ({ parts: handles }) => {
    handles.forEach((one) => parts.delete(one));
    return {};
  },
};

const refusal = (kind, message) => Object.assign(new Error(message), { kind });
const decoded = ({ dtype, shape, data }) => read(dtype, shape, Buffer.from(data, "base64"));
const encoded = (dtype, one) => ({ dtype, shape: one.shape, data: write(dtype, one).toString("base64") });
const mapped = (table, change) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, change(value)]));

// At birth a gain is 1, a bias 0, and a weight small, of either sign and unlike every other.
function random(shapes) {
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const data = new Float64Array(shape.reduce((a, b) => a * b, 1));
      const value = { gain: () => 1, bias: () => 0 }[name] ?? (() => Math.random() - 0.5);
      return [name, { shape, data: data.map(value) }];
    }),
  );
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: request, ...said } = JSON.parse(line);
  if (request === "stop") break;
  let answer;
  try {
    if (!(request in REQUESTS)) throw refusal("unsupported", `This program knows no ${request}.`);
    answer = REQUESTS[request](said);
  } catch (error) {
    answer = { error: { kind: error.kind ?? "internal", message: error.message } };
  }
  process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
}
