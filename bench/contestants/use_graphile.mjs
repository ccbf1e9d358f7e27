// graphile-worker in its batched mode: a local queue, completions in sets. The commands and the
// record are those of handling.py.
import fs from 'node:fs'
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker'

const connectionString = process.env.BENCH_URL
const concurrentJobs = Number(process.env.BENCH_AT_ONCE || 24)
const size = Number(process.env.BENCH_BATCH || 500)
const each = process.env.BENCH_EACH === '1'
const logger = new Logger(() => () => {})
const SET = 1000

const now = () => (performance.timeOrigin + performance.now()) / 1000
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, Math.max(0, milliseconds)))

class Handled {
  constructor (folder, index) {
    this.folder = folder
    this.index = index
    this.count = new Float64Array(3)
    this.bytes = new Uint8Array(this.count.buffer)
    this.file = fs.openSync(`${folder}/${index}.count`, 'w+')
    fs.writeSync(this.file, this.bytes, 0, 24, 0)
    this.each = each ? fs.openSync(`${folder}/${index}.each`, 'a') : null
  }

  async waitForGo () {
    fs.writeFileSync(`${this.folder}/${this.index}.ready`, '')
    while (!fs.existsSync(`${this.folder}/go`)) await sleep(5)
  }

  hit (job) {
    const at = now()
    if (this.count[0] === 0) this.count[1] = at
    this.count[0]++
    this.count[2] = at
    fs.writeSync(this.file, this.bytes, 0, 24, 0)
    if (this.each !== null) fs.writeSync(this.each, `${job} ${at.toFixed(6)}\n`)
  }
}

async function enqueue (count) {
  const utils = await makeWorkerUtils({ connectionString, logger })
  const began = performance.now()
  for (let at = 0; at < count; at += SET) {
    const length = Math.min(SET, count - at)
    await utils.addJobs(
      Array.from({ length }, (_, k) => ({ identifier: 'noop', payload: { job: at + k } })))
  }
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }))
  await utils.release()
}

async function trickle (count, milliseconds, path) {
  const utils = await makeWorkerUtils({ connectionString, logger })
  const lines = []
  let due = performance.now()
  for (let job = 0; job < count; job++) {
    await sleep(due - performance.now())
    due += milliseconds
    const before = now()
    await utils.addJob('noop', { job })
    lines.push(`${job} ${before.toFixed(6)} ${now().toFixed(6)}\n`)
  }
  fs.writeFileSync(path, lines.join(''))
  await utils.release()
}

async function work (folder, index) {
  const handled = new Handled(folder, index)
  await handled.waitForGo()
  const worker = {
    connectionString,
    concurrentJobs,
    maxPoolSize: 10,
    pollInterval: 1000,
    logger,
    localQueue: { size },
    // 0 is its documented way to complete in sets without waiting for them to fill.
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0
  }
  const runner = await run({
    preset: { worker },
    taskList: { noop: async ({ job }) => { handled.hit(job) } },
    noHandleSignals: true
  })
  process.on('SIGTERM', async () => {
    await runner.stop().catch(() => {})
    process.exit(0)
  })
  await new Promise(() => {})
}

const [command, ...given] = process.argv.slice(2)
switch (command) {
  case 'setup': await runMigrations({ connectionString, logger }); break
  case 'enqueue': await enqueue(Number(given[0])); break
  case 'trickle': await trickle(Number(given[0]), Number(given[1]), given[2]); break
  case 'work': await work(given[0], given[1]); break
  default: console.error('see handling.py'); process.exit(2)
}
process.exit(0)
