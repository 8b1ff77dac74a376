// The flows of a run as typed arrays, and which of them are chosen: conditions on their columns, all of which hold.

const KINDS = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array };

/** Columns from the bytes that the server sends: a header's length, the header, numbers at offsets behind it. */
export const decode = (buffer) => {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  for (const { name, kind, offset } of header.columns) {
    columns[name] = new KINDS[kind](buffer, 4 + length + offset, header.rows);
  }
  return { ...header, ...columns };
};

export const STATUS = ["completed", "failed", "unfinished"];

/** The rows of `flows` that figures are of, or all. */
export const makeChoice = (flows) => {
  const listeners = [];
  // By column: [low, high] inclusive. `active`: under way at some instant between; `node`: at either end; `among`:
  // a set of numbers of flows.
  let conditions = {};
  let isAll = false;
  let base = null, chosen = null;

  const inRange = (column, [low, high]) => (row) => column[row] >= low && column[row] <= high;
  const tests = () => Object.entries(conditions).map(([name, wanted]) => {
    if (name === "node") return (row) => flows.src[row] === wanted || flows.dst[row] === wanted;
    if (name === "status") return (row) => flows.status[row] === wanted;
    if (name === "among") return (row) => wanted.has(flows.flow[row]);
    if (name === "active") {
      return (row) => {
        // Without a completion time it is under way to the end, as far as is known.
        const end = Number.isNaN(flows.fct[row]) ? Infinity : flows.start[row] + flows.fct[row];
        return flows.start[row] <= wanted[1] && end >= wanted[0];
      };
    }
    return inRange(flows[name], wanted);
  });
  const choose = () => {
    const all = tests();
    chosen = all.length ? base.filter((row) => all.every((test) => test(row))) : null;
  };
  // The same array as long as the rows are the same: what is made of it is kept by it.
  const lookAt = () => {
    base = Uint32Array.from({ length: flows.rows }, (_, row) => row).filter((row) => isAll || flows.measured[row]);
  };
  lookAt();

  const tell = () => {
    choose();
    for (const listener of listeners) listener();
  };
  return {
    flows,
    /** Rows that are looked at. */
    base: () => base,
    /** Rows that are chosen; null: none in particular. */
    chosen: () => chosen,
    conditions: () => conditions,
    isAll: () => isAll,
    /** Sets conditions; null takes one away. */
    set(changes) {
      conditions = { ...conditions, ...changes };
      for (const [name, value] of Object.entries(conditions)) if (value === null) delete conditions[name];
      tell();
    },
    clear() {
      conditions = {};
      tell();
    },
    lookAtAll(value) {
      isAll = value;
      lookAt();
      tell();
    },
    /** Calls `listener` after each change. */
    watch(listener) {
      listeners.push(listener);
    },
  };
};

/** The first `count` of `rows` by `key`, the largest first, or the smallest; those without a value come last. */
export const top = (rows, key, count, isDescending) => {
  const sign = isDescending ? -1 : 1;
  const value = (row) => Number.isNaN(key[row]) ? Infinity : sign * key[row];
  const before = (a, b) => value(a) - value(b) || a - b;
  if (rows.length <= 4 * count) return Array.from(rows).sort(before).slice(0, count);
  // Kept sorted; most rows are no better than the last of it.
  const kept = [];
  for (const row of rows) {
    if (kept.length === count && before(row, kept[count - 1]) >= 0) continue;
    let low = 0, high = kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(kept[middle], row) < 0) low = middle + 1; else high = middle;
    }
    kept.splice(low, 0, row);
    if (kept.length > count) kept.pop();
  }
  return kept;
};
