import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { documents, makeSeed, type Seed } from '../lib/nocloud/index.ts'
import { createProxmox } from '../lib/proxmox/index.ts'
import { createSim, defaultWorld } from '../sim/index.ts'
import { type Figure, type Part, type Sheet, TIMED } from './report.ts'
import { median } from './statistics.ts'

const ROUNDS = 20

const seed: Seed = {
  instanceId: 'proxy-0-g1',
  hostname: 'egress-proxy-0-abcdef',
  mac: '02:00:00:00:00:01',
  proxy: { port: 3128, allow: ['10.0.0.0/8', '192.168.0.0/16'] },
  probeFrom: ['10.1.0.0/16'],
  memoryMiB: 512,
}

/** The seed a VM boots with: to make it and to send it, against xorriso making one of the same files. */
export const iso: Part = {
  name: 'iso',
  about: 'bytes and milliseconds to make a seed and to upload it, against xorriso',
  async run(say) {
    const folder = mkdtempSync(join(tmpdir(), 'egress-bench-'))
    try {
      const theirs = xorriso(folder)
      if (!theirs) say('xorriso is not installed, so nothing is compared with it')
      say(`${ROUNDS} of each, in turns`)
      const times: Record<'ours' | 'theirs', number[]> = { ours: [], theirs: [] }
      makeSeed(seed)
      for (let round = 0; round < ROUNDS; round++) {
        times.ours.push(timed(() => makeSeed(seed)))
        if (theirs) times.theirs.push(timed(theirs.make))
      }
      const bytes = makeSeed(seed)
      const others = theirs && new Uint8Array(readFileSync(theirs.path))
      const uploads = await uploadMs([bytes, ...(others ? [others] : [])])
      const made = median(times.ours)
      const rows: Sheet['rows'] = [['ours', bytes.byteLength, made, uploads[0] ?? Number.NaN]]
      const figures: Figure[] = [
        { name: 'bytes', value: bytes.byteLength, unit: 'bytes', noise: 0 },
        { name: 'to make', value: made, unit: 'ms', noise: TIMED },
        { name: 'to upload', value: uploads[0] ?? Number.NaN, unit: 'ms', noise: TIMED },
      ]
      if (others) {
        const took = median(times.theirs)
        rows.push(['xorriso, its process included', others.byteLength, took, uploads[1] ?? Number.NaN])
        rows.push([
          'ours / xorriso',
          bytes.byteLength / others.byteLength,
          made / took,
          (uploads[0] ?? Number.NaN) / (uploads[1] ?? Number.NaN),
        ])
        const ratio = bytes.byteLength / others.byteLength
        figures.push({ name: 'bytes / xorriso', value: ratio, unit: '', noise: 0, aim: 1 })
        figures.push({ name: 'to make / xorriso', value: made / took, unit: '', noise: TIMED, aim: 1 })
      }
      const notes = theirs ? [] : ['xorriso is not installed (apt-get install xorriso): not compared.']
      return {
        sheets: [{ title: 'A seed', head: ['', 'bytes', 'make ms', 'upload ms'], rows }],
        figures,
        notes: [...notes, 'Uploaded over TLS to the simulator on loopback, to the UPID in the answer.'],
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

function timed(work: () => unknown): number {
  const startedMs = performance.now()
  work()
  return performance.now() - startedMs
}

/** The same files, label and extensions by xorriso; undefined where it is missing. */
function xorriso(folder: string): { path: string; make(): void } | undefined {
  try {
    execFileSync('xorriso', ['-version'], { stdio: 'ignore' })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  const [files, path] = [join(folder, 'files'), join(folder, 'theirs.iso')]
  mkdirSync(files)
  for (const [name, text] of Object.entries(documents(seed))) writeFileSync(join(files, name), text)
  const args = [
    '-as',
    'genisoimage',
    '-quiet',
    '-volid',
    'cidata',
    '-joliet',
    '-rock',
    '-output',
    path,
    files,
  ]
  return {
    path,
    make() {
      rmSync(path, { force: true })
      execFileSync('xorriso', args, { stdio: 'ignore' })
    },
  }
}

/** Median of the call that uploads, for each image, the images in turns. */
async function uploadMs(images: readonly Uint8Array[]): Promise<number[]> {
  const world = defaultWorld()
  const sim = createSim({ world })
  const { endpoints } = await sim.listen()
  const client = createProxmox({ endpoints, token: { get: async () => [world.tokens.egress] } })
  try {
    const vms = client.with({ signal: new AbortController().signal })
    const node = endpoints[0]?.node ?? ''
    const times = images.map((): number[] => [])
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [index, bytes] of images.entries()) {
        const startedMs = performance.now()
        await vms.upload({ node, storage: 'local', filename: `bench-${index}-${round}.iso`, bytes })
        // The first one opens the connection.
        if (round > 0) times[index]?.push(performance.now() - startedMs)
      }
    }
    return times.map(median)
  } finally {
    await client.close()
    await sim.close()
  }
}
