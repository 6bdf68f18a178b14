// Attention, heads, layer norm and positions of "Attention Is All You Need", in plain JavaScript.
//
// A tensor is { shape, data }: the sizes of its axes, and a Float64Array with the last axis fastest.
// Masks are tensors of 0 and 1 (1 = may be attended) that broadcast to (batch, heads, queries, keys).

export const size = (shape) => shape.reduce((product, length) => product * length, 1);

export const tensor = (shape, data = new Float64Array(size(shape))) => ({ shape, data });

// softmax(Q K^T / sqrt(E)) V: query (B, H, Q, E), key (B, H, K, E), value (B, H, K, G).
export function attention(query, key, value, mask = null) {
  const [batch, heads, queries, width] = query.shape;
  const keys = key.shape[2];
  const columns = value.shape[3];
  const output = tensor([batch, heads, queries, columns]);
  const weights = tensor([batch, heads, queries, keys]);
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let q = 0; q < queries; q++) {
        const row = (b * heads + h) * queries + q;
        const scores = new Float64Array(keys).fill(-Infinity);
        for (let k = 0; k < keys; k++) {
          if (!mask || allowed(mask, b, h, q, k)) {
            const other = (b * heads + h) * keys + k;
            scores[k] = dot(query.data, row * width, key.data, other * width, width) / Math.sqrt(width);
          }
        }
        const shares = softmax(scores);
        weights.data.set(shares, row * keys);
        for (let k = 0; k < keys; k++) {
          if (shares[k] === 0) continue; // what is hidden may hold anything
          const other = ((b * heads + h) * keys + k) * columns;
          for (let c = 0; c < columns; c++) {
            output.data[row * columns + c] += shares[k] * value.data[other + c];
          }
        }
      }
    }
  }
  return [output, weights];
}

// Concat(head_1, .., head_H) W^O: query (B, Q, D), key and value (B, K, D).
export function multiHeadAttention(parameters, heads, query, key, value, mask = null) {
  const [output] = attention(
    split(linear(parameters, "query", query), heads),
    split(linear(parameters, "key", key), heads),
    split(linear(parameters, "value", value), heads),
    mask,
  );
  return linear(parameters, "output", merge(output));
}

// gain * (x - mean) / sqrt(variance + epsilon) + bias, over the last axis.
export function layerNorm({ gain, bias }, epsilon, x) {
  const width = x.shape.at(-1);
  const result = tensor(x.shape);
  for (let start = 0; start < x.data.length; start += width) {
    const row = centred(centred(x.data.subarray(start, start + width)));
    const variance = dot(row, 0, row, 0, width) / width;
    for (let i = 0; i < width; i++) {
      const normalised = row[i] / Math.sqrt(variance + epsilon);
      result.data[start + i] = gain.data[i] * normalised + bias.data[i];
    }
  }
  return result;
}

// x (B, S, D) plus sin and cos of position / 10000^(2i/D), in turn.
export function positionalEncoding(x) {
  const [batch, length, width] = x.shape;
  const result = tensor(x.shape, Float64Array.from(x.data));
  for (let position = 0; position < length; position++) {
    for (let column = 0; column < width; column++) {
      const angle = position / 10000 ** ((2 * Math.floor(column / 2)) / width);
      const wave = column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
      for (let b = 0; b < batch; b++) {
        result.data[(b * length + position) * width + column] += wave;
      }
    }
  }
  return result;
}

function allowed(mask, ...place) {
  let index = 0;
  mask.shape.forEach((length, axis) => {
    index = index * length + (length === 1 ? 0 : place[axis]);
  });
  return mask.data[index] !== 0;
}

// The maximum is taken out first; a row without any key has no shares, and gives NaN.
function softmax(scores) {
  const peak = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = scores.map((score) => Math.exp(score - peak));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

// x W^T + b; weights are (out, in), and a bias may be left out.
function linear(parameters, name, x) {
  const weight = parameters[`${name}.weight`];
  const bias = parameters[`${name}.bias`];
  const [outputs, inputs] = weight.shape;
  const rows = x.data.length / inputs;
  const result = tensor([...x.shape.slice(0, -1), outputs]);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < outputs; i++) {
      const product = dot(x.data, row * inputs, weight.data, i * inputs, inputs);
      result.data[row * outputs + i] = product + (bias ? bias.data[i] : 0);
    }
  }
  return result;
}

// (B, L, H * E) as (B, H, L, E): head number h has the h-th slice of the columns.
function split({ shape: [batch, length, columns], data }, heads) {
  const width = columns / heads;
  const result = tensor([batch, heads, length, width]);
  for (let i = 0; i < data.length; i++) {
    const [b, l, h] = [Math.floor(i / columns / length), Math.floor(i / columns) % length, Math.floor((i % columns) / width)];
    result.data[((b * heads + h) * length + l) * width + (i % width)] = data[i];
  }
  return result;
}

// (B, H, L, E) as (B, L, H * E), the heads side by side.
function merge({ shape: [batch, heads, length, width], data }) {
  const result = tensor([batch, length, heads * width]);
  for (let i = 0; i < data.length; i++) {
    const [row, e] = [Math.floor(i / width), i % width];
    const [b, h, l] = [Math.floor(row / length / heads), Math.floor(row / length) % heads, row % length];
    result.data[((b * length + l) * heads + h) * width + e] = data[i];
  }
  return result;
}

function dot(a, i, b, j, length) {
  let sum = 0;
  for (let n = 0; n < length; n++) sum += a[i + n] * b[j + n];
  return sum;
}

function centred(row) {
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  return row.map((value) => value - mean);
}
