// Arrays out of the document: base64, then inflate, then numbers. Each is opened when it is first
// asked for and kept.

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

let halfTable = null;

// All 65,536 half floats as floats: a lookup beats taking each one apart.
function halves() {
  if (halfTable) return halfTable;
  halfTable = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) halfTable[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) halfTable[bits] = fraction ? NaN : sign * Infinity;
    else halfTable[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halfTable;
}

function looked(raw, table) {
  const values = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) values[i] = table[raw[i]];
  return values;
}

const SQUARES = Float32Array.from({ length: 256 }, (_, raw) => (raw / 255) ** 2);

function numbers(buffer, { dtype, code }) {
  if (dtype === "f16") return looked(new Uint16Array(buffer), halves());
  if (dtype === "f32") return new Float32Array(buffer);
  if (dtype === "u32") return new Uint32Array(buffer);
  if (dtype === "u16") return new Uint16Array(buffer);
  const raw = new Uint8Array(buffer);
  return code === "sqrt" ? looked(raw, SQUARES) : raw;
}

export class Arrays {
  constructor(blobs) {
    this.blobs = blobs;
    this.opened = new Map();
  }

  // A promise of {data, shape}.
  get(ref) {
    if (!this.opened.has(ref)) this.opened.set(ref, this.#open(ref));
    return this.opened.get(ref);
  }

  async #open(ref) {
    const buffer = await inflate(bytesOf(this.blobs[ref.blob]));
    const data = numbers(buffer, ref);
    const expected = ref.shape.reduce((a, b) => a * b, 1);
    if (data.length !== expected) {
      throw new Error(`blob ${ref.blob} holds ${data.length} numbers, not ${expected}`);
    }
    return { data, shape: ref.shape };
  }
}
