// numpy's .npy, written and read independently of the runner (NEP 1).
import { readFileSync, writeFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';

const types = {
  float32: ['<f4', Float32Array], float64: ['<f8', Float64Array], float16: ['<f2', Uint16Array],
  bool: ['|b1', Uint8Array], uint8: ['|u1', Uint8Array], int8: ['|i1', Int8Array],
  uint16: ['<u2', Uint16Array], int16: ['<i2', Int16Array], uint32: ['<u4', Uint32Array],
  int32: ['<i4', Int32Array], uint64: ['<u8', BigUint64Array], int64: ['<i8', BigInt64Array],
};

function encodeStrings(data) {
  const wide = data.map((text) => [...text].map((c) => c.codePointAt(0)));
  const width = Math.max(1, ...wide.map((points) => points.length));
  const out = new Uint32Array(width * data.length);
  wide.forEach((points, i) => out.set(points, i * width));
  return [`<U${width}`, Buffer.from(out.buffer)];
}

// Where in C order the elements of Fortran order stand.
function fortranOrder(dims) {
  const strides = dims.map((_, d) => dims.slice(d + 1).reduce((a, b) => a * b, 1));
  const index = dims.map(() => 0);
  return Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => {
    const at = index.reduce((sum, i, d) => sum + i * strides[d], 0);
    for (let d = 0; d < dims.length && ++index[d] === dims[d]; d++) index[d] = 0;
    return at;
  });
}

// `fortran`: the first dimension is the fastest; `big`: the other order of bytes.
export function npyBytes({ type, dims, data }, { fortran = false, big = false } = {}) {
  const given = fortran ? fortranOrder(dims).map((at) => data[at]) : data;
  const numbers = type === 'string' || !fortran ? given : types[type][1].from(given);
  const [little, bytes] = type === 'string' ? encodeStrings([...numbers])
    : [types[type][0], Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)];
  const unit = type === 'string' ? 4 : numbers.BYTES_PER_ELEMENT;
  const body = Buffer.from(bytes);
  for (let at = 0; big && at < body.length; at += unit) body.subarray(at, at + unit).reverse();
  const descr = big ? little.replace('<', '>') : little;
  let head = `{'descr': '${descr}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${dims.map((d) => `${d},`).join(' ')}), }`;
  head = `${head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11)}\n`;
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, head.length & 255, head.length >> 8]);
  return Buffer.concat([start, Buffer.from(head, 'latin1'), body]);
}

export const writeNpy = (file, tensor) => writeFileSync(file, npyBytes(tensor));

export function readNpy(file) {
  const bytes = readFileSync(file);
  if (bytes.subarray(1, 6).toString() !== 'NUMPY') throw new Error(`${file} is no .npy`);
  const n = bytes.readUInt16LE(8);
  const head = bytes.subarray(10, 10 + n).toString('latin1');
  const [, descr] = /'descr': '([^']+)'/.exec(head);
  const dims = /'shape': \(([^)]*)\)/.exec(head)[1].split(',').filter((d) => d.trim()).map(Number);
  const body = Uint8Array.from(bytes.subarray(10 + n)).buffer; // aligned
  if (descr.startsWith('<U')) {
    const width = Number(descr.slice(2));
    const points = new Uint32Array(body);
    const data = Array.from({ length: points.length / width }, (_, i) =>
      String.fromCodePoint(...points.subarray(i * width, (i + 1) * width)).replace(/\0+$/, ''));
    return { type: 'string', dims, data };
  }
  const [type, [, Kind]] = Object.entries(types).find(([, [each]]) => each === descr);
  return { type, dims, data: new Kind(body) };
}

const CRCS = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});
const crc32 = (bytes) => {
  let c = 0xffffffff;
  for (const byte of bytes) c = CRCS[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
};

// A ZIP archive as numpy.savez writes it, with `deflate` as numpy.savez_compressed does.
export function writeNpz(file, tensors, { deflate = false } = {}) {
  const locals = [];
  const central = [];
  let offset = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const bytes = npyBytes(tensor);
    const body = deflate ? deflateRawSync(bytes) : bytes;
    const member = Buffer.from(`${name}.npy`);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(deflate ? 8 : 0, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(body.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(member.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, member, body]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, tail, member]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(central.length, 8);
  end.writeUInt16LE(central.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  writeFileSync(file, Buffer.concat([...locals, directory, end]));
}
