'use strict';

// A process that locks with node-redlock. It reads one command per line and
// answers each with one line; peers.py lists the commands.
//
//   peer.js 4|5 HOST:PORT,HOST:PORT... EXPIRY_MS

const readline = require('readline');
const Redis = require('ioredis');
const Region = require('./region');

const [version, addresses, expiry] = process.argv.slice(2);
const Redlock = version === '4' ? require('redlock-4')
  : require('redlock').default;

const clients = addresses.split(',').map((address) => {
  const [host, port] = address.split(':');
  const client = new Redis({ host, port: Number(port) });
  return client.on('error', () => {}); // the server may end before the client
});
// The defaults: 10 retries, each after 100 to 300 ms.
const patient = new Redlock(clients);
const once = new Redlock(clients, { retryCount: 0 });
// Delays of 1 to 5 ms, so that node-redlock gets its share alongside ours.
const eager = new Redlock(clients, { retryDelay: 3, retryJitter: 2 });
for (const redlock of [patient, once, eager]) redlock.on('error', () => {});

const now = () => Number(process.hrtime.bigint() / 1000n);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const isBusy = (error) => /^(LockError|ExecutionError)$/.test(error.name);
// Version 4 calls release() `unlock`.
const drop = (lock) => (lock.release ? lock.release() : lock.unlock());

/** Retries until the lock is acquired. Returns undefined after endUs. */
async function take(redlock, name, ms = Number(expiry), endUs = Infinity) {
  for (;;) {
    try {
      return await redlock.acquire([name], ms);
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (now() >= endUs) return undefined;
      if (redlock === once) await sleep(20);
    }
  }
}

let held;

const verbs = {
  async contend(kind, name, file, total, stayUs) {
    const region = new Region(file, total, stayUs);
    let longest = 0;
    for (let more = true; more;) {
      const before = now();
      const lock = await take(eager, name);
      longest = Math.max(longest, now() - before);
      more = region.exclusive();
      await drop(lock);
    }
    region.close();
    return `done entered=${region.entered} overlaps=${region.overlaps} ` +
      `stale=0 longest_us=${longest}`;
  },

  async race(kind, name, threads, ms) {
    const begin = now(), end = begin + 1000 * ms;
    let pairs = 0;
    for (; now() < end; pairs++) await drop(await take(patient, name));
    return `done pairs=${pairs} us=${now() - begin}`;
  },

  /** Does what race does, but sleeps while it holds the lock and after it has
   *  released it. A pair counts if the lock was granted before the end; a wait
   *  always counts. */
  async turns(kind, name, ms, holdMs, thinkMs) {
    const begin = now(), end = begin + 1000 * ms, waits = [];
    let pairs = 0;
    while (now() < end) {
      const before = now(), lock = await take(patient, name), after = now();
      waits.push(after - before);
      pairs += after < end;
      await sleep(holdMs);
      await drop(lock);
      await sleep(thinkMs);
    }
    return `done pairs=${pairs} us=${end - begin} ` +
      ['waits', ...waits].join(' ');
  },

  async hold(kind, name, leaseMs, waitMs) {
    const before = now();
    const lease = Number(leaseMs) || Number(expiry);
    const lock = waitMs < 0 ? await take(patient, name, lease)
      : await take(once, name, lease, before + 1000 * waitMs);
    if (!lock) return 'busy';
    held = lock;
    return `held token=0 waited_us=${now() - before}`;
  },

  async drop() {
    await drop(held);
    return 'dropped';
  },
};

async function obey(line) {
  const [verb, ...words] = line.split(' ');
  try {
    return await verbs[verb](...words);
  } catch (error) {
    return `failed ${error.name}: ${error.message.replace(/\s+/g, ' ')}`;
  }
}

async function main() {
  await Promise.all(clients.map((client) => client.ping()));
  console.log('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(await obey(line));
  }
  process.exit(0);
}

main();
