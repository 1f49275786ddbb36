// Exact weights of a rectangle from Q, K and the log-sum-exp of each row, in a worker where there
// is one.
//
//     weight[t, s] = exp(scale · q_t · k_s − lse_t),  0 where the mask forbids

// Sent to the worker as text, so it may use nothing from outside itself.
export function tileWeights(job) {
  const { q, k, lse, width, scale, firstRow, firstColumn, causal, reach } = job;
  const rows = lse.length;
  const columns = k.length / width;
  const out = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    const t = firstRow + i;
    for (let j = 0; j < columns; j++) {
      const s = firstColumn + j;
      if (causal && s > t) continue;
      if (reach !== null && Math.abs(t - s) > reach) continue;
      let dot = 0;
      for (let d = 0; d < width; d++) dot += q[i * width + d] * k[j * width + d];
      const weight = Math.exp(scale * dot - lse[i]);
      out[i * columns + j] = weight > 0 ? Math.min(weight, 1) : 0;
    }
  }
  return out;
}

function startWorker() {
  const source = `const work = ${tileWeights.toString()};
onmessage = ({ data }) => {
  const out = work(data.job);
  postMessage({ id: data.id, out }, [out.buffer]);
};`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return new Worker(address);
}

export class TileMaker {
  constructor() {
    this.waiting = new Map();
    this.next = 0;
    try {
      this.worker = startWorker();
      this.worker.onmessage = ({ data }) => this.#settle(data.id, data.out);
      this.worker.onerror = (event) => {
        event.preventDefault();
        this.#fallBack();
      };
    } catch {
      this.worker = null;
    }
  }

  compute(job) {
    if (!this.worker) return Promise.resolve(tileWeights(job));
    const id = this.next++;
    return new Promise((resolve) => {
      this.waiting.set(id, { resolve, job });
      this.worker.postMessage({ id, job });
    });
  }

  #settle(id, out) {
    this.waiting.get(id)?.resolve(out);
    this.waiting.delete(id);
  }

  // A browser may refuse workers from a file: the same sums are then done here.
  #fallBack() {
    this.worker = null;
    for (const [id, { job }] of this.waiting) this.#settle(id, tileWeights(job));
  }
}

let tileMaker = null;

export function sharedTiles() {
  tileMaker ??= new TileMaker();
  return tileMaker;
}
