import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { fetchThrough } from '../../cli/fetch-through.ts'
import { guestImage } from '../../sim/index.ts'
import { createInstallation, type Installation } from '../e2e/installation.ts'
import { until } from './real-life.ts'

let here: Installation
beforeAll(async () => {
  await guestImage({ onLine: (line) => console.info(line) })
})
afterEach(() => here.close())

/** Process ids of the machines of this installation. */
function machines(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const words = commandLine(pid)
      return words.startsWith('qemu-system') && words.includes(here.folder)
    })
    .map(Number)
}

/** Empty for a process that is gone by now. */
function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** Disks of machines that are no templates. */
const disks = () => readdirSync(join(here.folder, 'sim', 'disks')).filter((name) => /vm-\d+-disk/.test(name))
const request = (uid: string) => ({
  type: 'ProxyRequested',
  uid,
  name: uid,
  spec: { zone: 'lab-1', image: 'debian-12' },
})

it('a request becomes a real machine that fetches a page, and a deletion leaves neither machine nor disk', async () => {
  here = createInstallation()
  await here.start('--guests', 'qemu')
  await here.publish(request('real'))
  await until('at rest', async () => {
    const [row] = await here.rows()
    return row?.phase === 'Ready' || row?.phase === 'Failed'
  })
  const [row] = await here.rows()
  expect(row).toMatchObject({ phase: 'Ready', address: expect.stringMatching(/^127\./) })
  expect(machines()).toHaveLength(1)
  const page = here.run().page ?? ''
  expect(await fetchThrough(row?.endpoint ?? '', page, AbortSignal.timeout(60_000))).toContain(
    'hello from egress',
  )
  const [disk = ''] = disks()
  const told = execFileSync(
    'qemu-img',
    ['info', '--force-share', '--output=json', join(here.folder, 'sim', 'disks', disk)],
    { encoding: 'utf8' },
  )
  expect(JSON.parse(told)).toMatchObject({ format: 'qcow2', 'virtual-size': 4 * 1024 ** 3 })

  await here.publish({ type: 'ProxyDeletionRequested', uid: 'real' }, 'delete')
  await until('deleted', async () => (await here.rows()).every(({ phase }) => phase === 'Deleted'))
  expect([machines(), disks(), await here.vms(), await here.seeds()]).toEqual([[], [], [], []])
})

it('a simulator that is killed with kill -9 leaves no machine behind', async () => {
  here = createInstallation()
  await here.start('--guests', 'qemu')
  await here.publish(request('orphan'))
  await until('the machine is on', async () => machines().length === 1)
  await here.kill()
  await until('the machine is gone', async () => machines().length === 0)
})
