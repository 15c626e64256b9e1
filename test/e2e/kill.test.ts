import { afterEach, expect, it } from 'vitest'
import { fetchThrough } from '../../cli/fetch-through.ts'
import { egress } from '../cli/egress.ts'
import { createInstallation, type Installation } from './installation.ts'

const uids = Array.from({ length: 10 }, (_, index) => `killed-${index}`)

let here: Installation
afterEach(() => here.close())

/** Ten creations under way, some of them in the middle of a clone; then the process is killed. */
async function killedInTheMiddle(): Promise<void> {
  here = createInstallation()
  await here.start()
  for (const uid of uids) {
    await here.publish({
      type: 'ProxyRequested',
      uid,
      name: uid,
      spec: { zone: 'lab-1', image: 'debian-12' },
    })
  }
  await here.until(
    'clones under way',
    async () => (await here.vms()).filter(({ lock }) => lock === 'clone').length >= 3,
  )
  await here.kill()
}

async function allAtRest(): Promise<boolean> {
  const rows = await here.rows()
  return rows.length === uids.length && rows.every(({ phase }) => phase === 'Ready' || phase === 'Failed')
}

async function expectTenThatServe(): Promise<void> {
  const rows = await here.rows()
  expect(rows.map(({ uid, phase }) => `${uid} ${phase}`).sort()).toEqual(uids.map((uid) => `${uid} Ready`))
  expect((await here.vms()).map(({ vmid }) => vmid).sort()).toEqual(
    rows.map(({ place }) => place?.vmid).sort(),
  )
  expect(await here.seeds()).toHaveLength(uids.length)
  const page = here.run().page ?? ''
  for (const { endpoint = '' } of rows) {
    expect(await fetchThrough(endpoint, page, AbortSignal.timeout(20_000))).toContain('hello from egress')
  }
}

it('a kill -9 in the middle of ten creations costs nothing: after the next start there are ten VMs, ten seeds, and all serve', {
  timeout: 240_000,
}, async () => {
  await killedInTheMiddle()
  await here.start()
  await here.until('all at rest', allAtRest)
  await expectTenThatServe()
})

it('with the hosts reset as well, each ends Ready, or as StuckLock whose hint, typed in, lets a redrive finish it', {
  timeout: 300_000,
}, async () => {
  await killedInTheMiddle()
  await here.start('--host-reset')
  await here.until('all at rest', allAtRest)
  const stuck = (await here.rows()).filter(({ phase }) => phase === 'Failed')
  expect(stuck.length).toBeGreaterThan(0)
  for (const { uid, problem } of stuck) {
    expect(problem?.code).toBe('StuckLock')
    const [, node = ''] = /on node (\w+)/.exec(problem?.hint ?? '') ?? []
    const typed = [...(problem?.hint ?? '').matchAll(/qm (unlock|destroy) [^`&]+/g)].map(([line]) =>
      line.trim().split(' '),
    )
    expect(typed.map(([, verb]) => verb)).toEqual(['unlock', 'destroy'])
    for (const [, ...argv] of typed) {
      expect(await egress(['sim', 'qm', '--data', here.folder, '--node', node, ...argv])).toMatchObject({
        code: 0,
      })
    }
    expect(await egress(['dlq', 'redrive', uid, '--data', here.folder])).toMatchObject({ code: 0 })
  }
  await here.until('all Ready', async () => (await here.rows()).every(({ phase }) => phase === 'Ready'))
  await expectTenThatServe()
})
