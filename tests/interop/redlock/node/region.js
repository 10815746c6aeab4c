'use strict';

// The words that the lock protects, in a file that other processes map: see
// region.h. Node cannot map files, but reading and writing a file uses the same
// pages.

const fs = require('fs');

const OWNER = 0, ENTRIES = 8;

class Region {
  constructor(file, total, stayUs) {
    this.fd = fs.openSync(file, 'r+');
    this.word = new BigInt64Array(1);
    this.total = Number(total);
    this.stayNs = BigInt(stayUs) * 1000n;
    this.entered = this.overlaps = 0;
  }

  get(at) {
    fs.readSync(this.fd, this.word, 0, 8, at);
    return Number(this.word[0]);
  }

  set(at, value) {
    this.word[0] = BigInt(value);
    fs.writeSync(this.fd, this.word, 0, 8, at);
  }

  /** Enters exclusively, or only returns false after enough entries. */
  exclusive() {
    const entries = this.get(ENTRIES);
    if (entries >= this.total) return false;
    this.overlaps += this.get(OWNER) !== 0;
    this.set(OWNER, process.pid);
    const end = process.hrtime.bigint() + this.stayNs;
    while (process.hrtime.bigint() < end);
    this.set(ENTRIES, entries + 1);
    this.overlaps += this.get(OWNER) !== process.pid;
    this.set(OWNER, 0);
    this.entered++;
    return true;
  }

  close() {
    fs.closeSync(this.fd);
  }
}

module.exports = Region;
