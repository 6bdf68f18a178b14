// Numbers as little-endian bytes: read into Float64Array, whatever they are stored in, and written.

import { tensor } from "./transformer.mjs";

const READERS = {
  float64: [8, (view, at) => view.getFloat64(at, true)],
  float32: [4, (view, at) => view.getFloat32(at, true)],
  int64: [8, (view, at) => Number(view.getBigInt64(at, true))],
  bool: [1, (view, at) => view.getUint8(at)],
};

export function read(dtype, shape, bytes) {
  if (!(dtype in READERS)) throw new TypeError(`numbers of ${dtype} are not read here`);
  const [step, reader] = READERS[dtype];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const result = tensor(shape);
  for (let i = 0; i < result.data.length; i++) result.data[i] = reader(view, i * step);
  return result;
}

export function write(dtype, { data }) {
  const bytes = Buffer.alloc(data.length * READERS[dtype][0]);
  data.forEach((value, i) => {
    if (dtype === "float32") bytes.writeFloatLE(value, i * 4);
    else bytes.writeDoubleLE(value, i * 8);
  });
  return bytes;
}
